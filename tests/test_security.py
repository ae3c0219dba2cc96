"""Nothing read from a disk or a network is ever run, and no secret reaches a file or a terminal (CORRECTNESS 2)."""

from __future__ import annotations

import ast
import io
import logging
import os
import re
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from launch import gymnast
from made_runs import finished_run
from typer.testing import CliRunner

import gymnast as library
from gymnast import redaction
from gymnast.cli.app import app
from gymnast.errors import UsageError
from gymnast.runs.labels import change_tags, write_note

SOURCE = Path(library.__file__).parent
MODULES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}

# --- no module runs what it reads -----------------------------------------------------------------------------------

RUNNERS = {"eval", "exec", "compile", "__import__", "execfile"}
FORBIDDEN = {
    *(f"builtins.{name}" for name in RUNNERS),
    *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn"),
    *("torch.load", "torch.jit.load", "torch.package.PackageImporter", "torch.hub.load", "torch.serialization.load"),
    *("numpy.lib.format.read_array", "pandas.read_pickle", "runpy.run_path", "runpy.run_module", "code.interact"),
    *("yaml.load", "yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "yaml.unsafe_load_all", "yaml.full_load_all"),
}
UNPICKLERS = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "joblib",
    "shelve",
    "marshal",
    "cloudpickle",
    "jsonpickle",
    "hickle",
}
"""Modules whose `load` runs what it reads."""
MAY_UNPICKLE = {
    # The pool sends env constructors to the workers it started itself, over a pipe nobody else can open.
    "envs/workers.py": {"cloudpickle"},
    "envs/worker_main.py": {"cloudpickle"},
}
MAY_IMPORT_BY_NAME = {
    # The packages of env families, from our own table.
    "envs/registry.py": 1,
    # The one door for code that a config names (env modules, encoders, policies, wrappers), behind the gate of `runs/trust.py`.
    "own_code.py": 1,
    # Names of the Python API and of its package, from our own tables.
    "__init__.py": 1,
    "api/__init__.py": 1,
    "runs/__init__.py": 1,
    # The three trackers; another name is refused before.
    "service/tracking/sending.py": 1,
    # The module of a command, from our own table.
    "cli/lazy.py": 1,
    # Packages that a module of ours names at its top and imports with their first use.
    "later.py": 1,
    # Entry points of packages that the user has installed; imported only when a config has a name that is not ours.
    "plugins.py": 1,
}
IMPORTERS = {"importlib.import_module", "importlib.util.spec_from_file_location", "importlib.metadata.entry_points"}
IMPORTERS |= {"importlib.machinery.SourceFileLoader", "pkgutil.resolve_name", "pydoc.locate", "importlib.reload"}


class Danger(ast.NodeVisitor):
    """Collects what a module does that it must not, whatever names it imported things under."""

    def __init__(self, may_unpickle: set[str]) -> None:
        self.may_unpickle = may_unpickle
        self.names: dict[str, str] = {}
        self.found: list[str] = []
        self.imports_by_name = 0

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._imported(alias.name)
            bound = alias.asname or alias.name.partition(".")[0]
            self.names[bound] = alias.name if alias.asname else bound

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            full = f"{node.module or ''}.{alias.name}"
            self._imported(node.module or "")
            self._named(full)
            self.names[alias.asname or alias.name] = full

    def visit_Name(self, node: ast.Name) -> None:
        # Not only calls: `run = exec` would hide one.
        if node.id in RUNNERS and node.id not in self.names and isinstance(node.ctx, ast.Load):
            self.found.append(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._named(self._dotted(node))
        if node.attr in {"Unpickler", "__globals__", "__subclasses__", "__builtins__"}:
            self.found.append(node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            constant = keyword.value.value if isinstance(keyword.value, ast.Constant) else ...
            if keyword.arg in {"shell", "allow_pickle"} and constant is not False:
                self.found.append(f"{keyword.arg}=")
            if keyword.arg in {"weights_only", "trust_remote_code"}:
                self.found.append(f"{keyword.arg}=")
            if keyword.arg == "typ" and constant == "unsafe":
                self.found.append("unsafe YAML")
        if self._dotted(node.func) in IMPORTERS:
            self.imports_by_name += 1
        self.generic_visit(node)

    def _imported(self, module: str) -> None:
        top = module.partition(".")[0]
        if top in UNPICKLERS - self.may_unpickle:
            self.found.append(f"import {top}")

    def _named(self, full: str) -> None:
        if full in FORBIDDEN:
            self.found.append(full)

    def _dotted(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            inner = self._dotted(node.value)
            return f"{inner}.{node.attr}" if inner else ""
        return ""


def look(source: str, may_unpickle: set[str] | None = None) -> Danger:
    """What is dangerous in a module."""
    danger = Danger(may_unpickle or set())
    danger.visit(ast.parse(source))
    return danger


@pytest.mark.parametrize("name", MODULES)
def test_no_module_runs_what_it_reads(name: str) -> None:
    """Exemptions are listed above, each with its reason."""
    danger = look(MODULES[name].read_text(encoding="utf-8"), MAY_UNPICKLE.get(name))
    assert danger.found == []
    assert danger.imports_by_name <= MAY_IMPORT_BY_NAME.get(name, 0), "importing by a name that a user may give"


def test_exemptions_are_needed() -> None:
    """A file that lost its reason loses its exemption."""
    for name, modules in MAY_UNPICKLE.items():
        assert look(MODULES[name].read_text(encoding="utf-8")).found == [f"import {module}" for module in modules]
    for name, count in MAY_IMPORT_BY_NAME.items():
        assert look(MODULES[name].read_text(encoding="utf-8")).imports_by_name == count


@pytest.mark.parametrize(
    "line",
    [
        "eval('1')", "exec(text)", "run = exec", "compile(text, '', 'exec')", "__import__(name)",
        "import builtins\nbuiltins.eval('1')", "import os\nos.system(line)", "from os import system",
        "import os as o\no.popen(line)", "subprocess.run(line, shell=True)", "subprocess.run(line, shell=flag)",
        "import pickle", "from pickle import loads", "import pickle as p", "from joblib import load", "import marshal",
        "import torch\ntorch.load(path)", "import torch as t\nt.load(path)", "from torch import load",
        "from torch import load as read", "import yaml\nyaml.load(text)", "from yaml import unsafe_load",
        "np.load(path, allow_pickle=True)", "np.load(path, allow_pickle=flag)", "YAML(typ='unsafe')",
        "class Mine(other.Unpickler): pass", "import cloudpickle",
    ],
)  # fmt: skip
def test_the_rule_can_be_broken(line: str) -> None:
    assert look(line).found


@pytest.mark.parametrize(
    "line", ["import importlib\nimportlib.import_module(x)", "from importlib import import_module as i\ni(x)"]
)
def test_imports_by_name_are_counted(line: str) -> None:
    assert look(line).imports_by_name == 1


@pytest.mark.parametrize(
    "line",
    [
        "policy.eval()",
        "model.load(path)",
        "subprocess.run(line, shell=False)",
        "import json",
        "import re\nre.compile('x')",
        "import numpy as np\nnp.load(path, allow_pickle=False)",
        "torch.compile(model)",
        "import pickletools",
        "eval: Config",
    ],
)
def test_the_rule_does_not_cry_wolf(line: str) -> None:
    assert look(line).found == []


# --- canaries -------------------------------------------------------------------------------------------------------

CANARIES = {
    "HF_TOKEN": "hf_canaryCanaryCanaryCanaryCanary01",
    "SOME_API_KEY": "canary-in-the-environment-02",
    "DOOR": "canary-behind-a-reference-03",  # a name that says nothing
}
IN_CLEAR = "canary-in-clear-04"
LOUD_ENV = """\
import os, sys
import gymnasium as gym
import numpy as np

class Loud(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, token="", break_at=0):
        assert token == os.environ["DOOR"], f"wrong token {token}"
        self.token, self.break_at, self.steps = token, break_at, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.break_at and self.steps >= self.break_at:
            raise RuntimeError(f"the server refused {self.token} and {os.environ['SOME_API_KEY']}")
        return np.zeros(2, np.float32), float(action), self.steps % 8 == 0, False, {}

gym.register("Loud-v0", Loud)
"""
SMALL = ("env.module=loud", "env.n_envs=2", "algo.n_steps=16", "algo.batch_size=16", "eval.episodes=2", "eval.every=64")
TOKEN = "env.kwargs.token=$DOOR"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an env that needs a token and does not keep it to itself, and a run that was trained in it."""
    folder = tmp_path_factory.mktemp("house")
    (folder / "loud.py").write_text(LOUD_ENV)
    trained = command(folder, "train", "Loud-v0:ppo", *SMALL, TOKEN, "-n", 128)
    assert trained.returncode == 0, trained.stderr
    return folder


def command(folder: Path, *arguments: object) -> CompletedProcess[str]:
    """A command among canaries; none may sing."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    done = gymnast(*arguments, cwd=folder, PYTHONPATH=path, **CANARIES)
    for canary in (*CANARIES.values(), IN_CLEAR):
        assert canary not in done.stdout + done.stderr, arguments
    return done


def silent(folder: Path) -> None:
    """No canary in any file, nor in its name."""
    for path in folder.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            for canary in (*CANARIES.values(), IN_CLEAR):
                assert canary.encode() not in raw and canary not in path.name, path


def test_no_canary_in_any_output_or_file(house: Path) -> None:
    """Train, resume, eval, show, compare, export, import; the run works everywhere and holds only the reference."""
    for arguments in (
        ("resume", "@last", "-n", 256),
        ("eval", "@last", "-e", 2),
        ("eval", "@last", "-e", 2, "--json"),
        ("runs", "show", "@last"),
        ("runs", "show", "@last", "--json"),
        ("runs", "list", "--json"),
        ("config", "show", "Loud-v0:ppo", *SMALL, TOKEN),
        ("config", "show", "Loud-v0:ppo", *SMALL, TOKEN, "--json"),
        ("runs", "export", "@last", "-o", "run.zip"),
        ("runs", "import", "run.zip", "--runs-dir", "elsewhere"),
        ("eval", "@last", "-e", 2, "--runs-dir", "elsewhere", "--trust"),
        ("resume", "@last", "-n", 384, "--runs-dir", "elsewhere"),
        ("doctor",),
    ):
        done = command(house, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    silent(house)
    for config in house.glob("*/*/config.json"):
        assert '"token": "$DOOR"' in config.read_text()


@pytest.mark.parametrize("where", ["inprocess", "workers"])
@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_no_canary_in_a_failure(house: Path, where: str, debug: tuple[str, ...]) -> None:
    """The env's own words are in the error, the status and the log; the canaries in them are not."""
    settings = (*SMALL, TOKEN, "env.kwargs.break_at=40", f"env.vectorization={where}", "env.max_restarts=1")
    done = command(house, "train", "Loud-v0:ppo", *settings, "-n", 512, *debug)
    assert done.returncode == 1
    assert "the server refused ***" in done.stderr
    silent(house)


def test_the_log_and_the_terminal_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run says, before its log is open and after, as a warning of a worker would."""
    from rich.console import Console

    from gymnast.training.keeping.report import Reporter

    monkeypatch.setenv("SOME_API_KEY", CANARIES["SOME_API_KEY"])
    terminal = io.StringIO()
    reporter = Reporter(Console(file=terminal, width=200))
    reporter.say(f"early {CANARIES['HF_TOKEN']}")
    reporter.open_log(tmp_path / "log.txt", 10_000)
    reporter.warn(f"late {CANARIES['SOME_API_KEY']}")
    reporter.close()
    assert (tmp_path / "log.txt").read_text() == terminal.getvalue() == "early ***\nwarning: late ***\n"


def test_what_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever listens to the package's loggers, and whatever is logged: a warning of a worker, a traceback."""
    monkeypatch.setenv("SOME_API_KEY", CANARIES["SOME_API_KEY"])
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    logging.getLogger("gymnast").addHandler(handler)
    try:
        log = redaction.logger("gymnast.envs.workers")
        log.warning("refused %s and %s", CANARIES["HF_TOKEN"], CANARIES["SOME_API_KEY"])
        try:
            raise RuntimeError(f"refused {CANARIES['HF_TOKEN']}")
        except RuntimeError:
            log.exception("it failed")
    finally:
        logging.getLogger("gymnast").removeHandler(handler)
    said = heard.getvalue()
    assert said.startswith("refused *** and ***\nit failed\nTraceback") and said.endswith("RuntimeError: refused ***\n")


def test_every_logger_is_clean() -> None:
    """No module makes one of its own."""
    makers = [name for name, path in MODULES.items() if "getLogger(" in path.read_text(encoding="utf-8")]
    assert makers == ["redaction.py"]


def test_labels(tmp_path: Path) -> None:
    """A note is cleaned, a tag refused; what an earlier version let through, or an archive brought, is not printed."""
    run = finished_run(tmp_path, 9.5)
    token = CANARIES["HF_TOKEN"]
    write_note(run, f"trained with {token}")
    assert (run.folder / "note.txt").read_text() == "trained with ***\n"
    with pytest.raises(UsageError, match="looks like a secret") as refused:
        change_tags(run, [token])
    assert token not in str(refused.value)
    (run.folder / "note.txt").write_text(token)
    run.set_tags([token])
    for command in (["runs", "show", run.id], ["runs", "list"], ["runs", "note", run.id], ["runs", "tag", run.id]):
        for as_json in ([], ["--json"]):
            done = CliRunner().invoke(app, [*command, *as_json, "-f", str(tmp_path)])
            assert done.exit_code == 0
            assert token not in done.output and ("***" in done.output or command == ["runs", "list"])


def test_a_secret_in_clear_is_refused_before_a_run_exists(house: Path) -> None:
    """On the command line and in a file; nothing is created, and the sentence says how to do it."""
    (house / "clear.yaml").write_text(
        f"id: Loud-v0\nvariants:\n  my_ppo:\n    env: {{kwargs: {{token: {IN_CLEAR}}}}}\n"
    )
    before = sorted(house.glob("runs/*"))
    try:
        for arguments in (
            ("train", "Loud-v0:ppo", *SMALL, f"env.kwargs.token={IN_CLEAR}"),
            ("train", "clear.yaml:my_ppo", *SMALL, "-n", 64),
            ("resume", "@last", f"env.kwargs.token={IN_CLEAR}", "-n", 10_000),
            ("config", "show", "Loud-v0:ppo", *SMALL, f"env.kwargs.token={IN_CLEAR}"),
            ("config", "check", "clear.yaml"),
        ):
            done = command(house, *arguments)
            assert done.returncode in (1, 2), arguments
            assert "Traceback" not in done.stderr
    finally:
        (house / "clear.yaml").unlink()
    assert sorted(house.glob("runs/*")) == before
    silent(house)


def test_a_missing_variable(house: Path) -> None:
    """Named in one sentence; no run is made."""
    before = sorted(house.glob("runs/*"))
    done = gymnast("train", "Loud-v0:ppo", *SMALL, TOKEN, cwd=house, DOOR=None)
    assert done.returncode == 2
    assert "environment variable DOOR, which is not set" in done.stderr
    assert sorted(house.glob("runs/*")) == before


# --- names ----------------------------------------------------------------------------------------------------------

OUTSIDE = ("..", "../house", "/etc", "abcde/../../x", "@last/../..", "@best:../x", "$(touch pwned)", "-rf", "%2e%2e")


def stamps(folder: Path) -> dict[Path, int]:
    """When each file was written, but the index, which a listing may refresh."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file() and "index" not in path.name}


@pytest.mark.parametrize("command", ["runs show", "runs rm --yes", "runs tag", "runs note", "runs export"])
def test_references_lead_nowhere_else(command: str, house: Path) -> None:
    """Text that is no reference to a run is refused with one sentence and changes nothing."""
    before = stamps(house)
    for text in OUTSIDE if command.startswith("runs rm") else OUTSIDE[:3]:
        done = gymnast(*command.split(), "--", text, cwd=house)
        assert done.returncode == 2, (text, done.stdout)
        assert re.fullmatch(r"error: .+\n", done.stderr), done.stderr
    assert stamps(house) == before
