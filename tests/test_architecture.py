"""Rules that hold for the whole package: nothing dangerous, nothing heavy before it is needed, every preset valid."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import order
import pytest

import gymnast
from gymnast.config import files
from gymnast.config.load import resolve

SOURCE = Path(gymnast.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
UNPICKLERS = {"pickle", "cPickle", "_pickle", "dill", "joblib", "shelve", "marshal", "cloudpickle"}
"""Modules whose `load` runs what it reads."""
BETWEEN_OUR_OWN_PROCESSES = ("worker_main.py", "workers.py")


def dotted(node: ast.AST) -> str:
    """`torch.load` of the expression that says so; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def dangers(source: str, *, may_unpickle: bool = False) -> list[str]:
    """Calls that run what they are given: code, shell lines, pickles."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not may_unpickle:
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            names = [module] if module else [alias.name for alias in node.names]
            found += [f"import {name}" for name in names if name.split(".")[0] in UNPICKLERS]
            if module == "torch" and any(alias.name == "load" for alias in node.names):
                found.append("torch.load")
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        if name in {"eval", "exec", "builtins.eval", "builtins.exec", "os.system", "os.popen", "torch.load"}:
            found.append(name)
        for keyword in node.keywords:
            constant = keyword.value.value if isinstance(keyword.value, ast.Constant) else ...
            if keyword.arg in {"shell", "allow_pickle"} and constant is not False:
                found.append(f"{keyword.arg}=…")
            if keyword.arg == "typ" and constant == "unsafe":
                found.append("unsafe YAML")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_runs_what_it_reads(path):
    assert dangers(path.read_text(encoding="utf-8"), may_unpickle=path.name in BETWEEN_OUR_OWN_PROCESSES) == []


@pytest.mark.parametrize(
    "line",
    [
        "eval('1')",
        "exec(text)",
        "subprocess.run(line, shell=True)",
        "subprocess.run(line, shell=flag)",
        "os.system(line)",
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load(path)",
        "from torch import load",
        "np.load(path, allow_pickle=True)",
        "YAML(typ='unsafe')",
    ],
)
def test_the_rule_can_be_broken(line):
    assert dangers(line)


@pytest.mark.parametrize(
    "line", ["policy.eval()", "model.load(path)", "subprocess.run(line, shell=False)", "import json"]
)
def test_the_rule_does_not_cry_wolf(line):
    assert dangers(line) == []


NOT_CALLED_HERE = {
    *("predict", "credit", "as_sb3"),  # users: gymnast.api.Agent
    *("OffPolicyTrainer", "descend"),  # plug-ins that learn from a replay
    *(
        "get_action_meanings",
        "_apply",
        "emit",
        "make_context",
        "format_help",
        "_repr_svg_",
    ),  # Gymnasium, torch, Python's logging, click, notebooks
    *("field_title_should_be_set", "model_schema", "tuple_schema"),  # pydantic
    *("function_plain_schema", "function_after_schema", "model_config"),
    # gymnast.service: what report, studio and the MCP server read through
    *("metric_names", "news", "metric_arrays", "metric_frame", "group_curves", "run_of"),
}
"""What others call: methods of classes that are derived from theirs, and our own Python API."""
Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


def mentioned(tree: ast.AST) -> Counter[str]:
    """Every name that a module or a part of it uses, also as text: `module:Class`."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found[node.id] += 1
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            found[node.attr] += 1
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found[node.value.rpartition(":")[2]] += 1
    return found


def defined(tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    """Functions, classes and methods without a decorator, which would use them; and constants of the module."""
    for parent in ast.walk(tree):
        for node in parent.body if isinstance(parent, (ast.Module, ast.ClassDef)) else ():
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.decorator_list:
                yield node.name, node
            elif isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(parent, ast.Module):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from ((name.id, node) for name in targets if isinstance(name, ast.Name))


def unused_in(trees: dict[str, ast.Module]) -> list[str]:
    """What no module mentions outside its own definition: a function that only calls itself is not used."""
    total: Counter[str] = Counter()
    for tree in trees.values():
        total.update(mentioned(tree))
    return [
        f"{path}:{node.lineno} {name}"
        for path, tree in trees.items()
        for name, node in defined(tree)
        if not name.startswith("__") and name not in NOT_CALLED_HERE and total[name] == mentioned(node)[name]
    ]


def test_nothing_is_there_for_tests_alone():
    """Every function, class, method and constant is used somewhere in the package."""
    trees = {str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    assert unused_in(trees) == []


def test_what_mentions_only_itself_is_unused():
    source = "A = 1\nclass B:\n    def c(self) -> B: return self.c()\ndef d(): return d()\ndef e(): return 0\ne()\n"
    assert unused_in({"m": ast.parse(source)}) == ["m:1 A", "m:2 B", "m:4 d", "m:3 c"]


def variants() -> list[str]:
    return [
        f"{env_id}:{name}"
        for env_id, env_files in files.known_envs()
        for name in dict.fromkeys(name for file in env_files for name in file.data.get("variants") or {})
    ]


@pytest.mark.parametrize("reference", variants())
def test_every_shipped_config_resolves(reference):
    resolved = resolve(reference)
    assert resolved.config.name == reference and resolved.notices == []
    # Every value that was written down says in which shipped file and on which line.
    for key, origin in resolved.origins.items():
        if key not in {"env.id", "algo.id"}:
            assert origin.startswith("presets/") and origin.rpartition(":")[2].isdigit(), key


def test_shipped_files_are_named_after_their_env():
    shipped = sorted((files.SHIPPED / "envs").glob("*.yaml"))
    assert len(shipped) >= 9
    for path in shipped:
        assert files.read(path).data["id"].replace("/", "_") == path.stem


HEAVY = ("torch", "gymnasium", "numpy", "pydantic")


def loaded_after(code: str) -> set[str]:
    """Which heavy packages a fresh interpreter has after `code`."""
    tail = f"\nimport sys\nprint('LOADED', *[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, timeout=120, check=True)
    return set(done.stdout.rpartition("LOADED")[2].split())


def run_command(*arguments: str) -> str:
    return (
        f"import sys\nsys.argv = ['gymnast', *{arguments!r}]\nfrom gymnast.__main__ import main\n"
        "try:\n    main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
    )


def test_importing_gymnast_is_light():
    assert loaded_after("import gymnast; assert gymnast.__version__") == set()


def test_help_is_light():
    assert loaded_after(run_command("--help")) == set()


@pytest.mark.parametrize("arguments", [("--version",), ("train", "--help"), ("runs", "list"), ("config", "list")])
def test_small_commands_are_light(arguments, tmp_path):
    """Typer itself needs pydantic to read the arguments of a command."""
    assert loaded_after(f"import os\nos.chdir({str(tmp_path)!r})\n" + run_command(*arguments)) <= {"pydantic"}


def test_reading_a_config_needs_no_torch():
    code = "from gymnast.config.load import resolve\nresolve('CartPole-v1:ppo', ['algo.gamma=0.9'])"
    assert loaded_after(code) == {"pydantic"}


def test_the_service_layer_imports_neither_torch_nor_gymnasium():
    """One after the other in one process, which tells the module that brings more than numpy and pydantic."""
    code = """
import importlib, pkgutil, sys
import gymnast.service
for module in pkgutil.iter_modules(gymnast.service.__path__):
    importlib.import_module(f"gymnast.service.{module.name}")
    assert not {"torch", "gymnasium"} & sys.modules.keys(), module.name
"""
    assert loaded_after(code) <= {"numpy", "pydantic"}


def test_the_probe_sees_what_is_loaded():
    assert loaded_after("import numpy") == {"numpy"}


def test_test_files_have_names_of_their_own() -> None:
    """Two modules of one name cannot be collected together; a single folder's run does not show it."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_files_that_are_begun_first_exist() -> None:
    assert [name for name in order.LONG if not (order.TESTS / name).is_file()] == []


def test_fields_are_named_by_their_owners_alone() -> None:
    """Rollouts, updates, checkpoints and traces carry what policy and algorithm declare, without knowing any of it."""
    for package in ("rollout", "training", "runs", "evaluation"):
        for path in (SOURCE / package).rglob("*.py"):
            if path.name == "table.py":  # columns of a table that people read
                continue
            named = re.findall(r"""["']log_prob["']|\[["']value["']\]|["']value["'] (?:not )?in\b""", path.read_text())
            assert not named, f"{path} names {named}"
