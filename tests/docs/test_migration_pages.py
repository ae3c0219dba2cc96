"""What docs/from-sb3.md and docs/from-cleanrl.md say is so: their commands, scripts, keys, metrics and links."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from pages import do_all

from gymnast.cli.app import app
from gymnast.cli.budget import trackers
from gymnast.cli.foreign_flags import INSTEAD, PAIRS, SILENT, SWITCHES, VALUES
from gymnast.cli.train import asked
from gymnast.config.foreign_keys import TRANSLATIONS
from gymnast.config.load import resolve
from gymnast.config.names import ALIASES
from gymnast.config.overrides import find_key, parse_override
from gymnast.errors import UsageError
from gymnast.metrics.catalogue import load_catalogue

ROOT = Path(__file__).parents[2]
PAGES = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("from-sb3", "from-cleanrl")}
ZOO = ROOT / "tests" / "config" / "zoo" / "ppo.yml"
SECTION = re.compile(r"(env|policy|algo|train|eval|log|spec)\.[a-z_]+")
METRIC = re.compile(r"(rollout|eval|train|time|charts|losses)/\w+")
TINY = {"train": ["-n", "64", "eval.episodes=2", "--quiet"], "eval": ["-e", "2"], "resume": ["-n", "64"]}
"""What makes a command cheap; the last of two equal options counts, but for budgets, of which there is one."""
BUDGETS = ("-n", "--total-timesteps", "--n-timesteps")


def made_cheap(command: list[str]) -> list[str]:
    """The command with next to nothing to do."""
    changes = TINY.get(command[1], [])
    at = [place for place, word in enumerate(command) if word in BUDGETS and changes]
    without = [word for place, word in enumerate(command) if place not in at and place - 1 not in at]
    return [*without, *changes]


@dataclass(frozen=True)
class Block:
    """A fenced block and its language."""

    language: str
    text: str

    def commands(self) -> list[list[str]]:
        """The lines of a shell block, as a shell reads them."""
        lines = self.text.replace("\\\n", " ").splitlines() if self.language == "" else []
        return [shlex.split(line, comments=True) for line in lines]


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page."""
    return [Block(*found) for found in re.findall(r"^```(\w*)\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)]


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)


def inline(page: str) -> list[str]:
    """Everything between backticks, outside of blocks."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def tables(page: str) -> list[list[list[str]]]:
    """Rows of cells of every table, the header first."""
    found = re.findall(r"(?:^\|.*\n)+", prose(page), re.MULTILINE)
    split = [[[cell.strip() for cell in line.strip("|").split(" |")] for line in t.splitlines()] for t in found]
    return [[[cell.strip("| ") for cell in row] for row in (rows[0], *rows[2:])] for rows in split]


def commands(page: str) -> list[list[str]]:
    """Every gymnast command of a page, in blocks and in the text."""
    words = [command for block in blocks(page) for command in block.commands()]
    words += [shlex.split(text) for text in inline(page)]
    return [command for command in words if command[:1] == ["gymnast"]]


@pytest.mark.parametrize(("page", "command"), [(page, c) for page in PAGES for c in commands(page) if len(c) > 2])
def test_commands_parse(page: str, command: list[str], folder: Path) -> None:
    """Commands, options and arguments exist."""
    for name in ("ppo.yml", "my.yml", "model.zip", "vecnormalize.pkl"):
        (folder / name).touch()
    parser: Any = typer.main.get_command(app)
    rest = command[1:]
    while hasattr(parser, "commands"):
        name, *rest = rest
        assert name in parser.commands, f"no command '{name}' in {' '.join(command)}"
        parser = parser.commands[name]
    parser.make_context(name, rest)  # raises where it does not understand


def steps(page: str) -> list[tuple[str, Any]]:
    """What a reader would do, made cheap: our peers' script first, because it saves the model that is used above it."""
    theirs = [b.text for b in blocks(page) if b.language == "python" and "stable_baselines3" in b.text]
    done: list[tuple[str, Any]] = [("python", re.sub(r"100_000", "1", text)) for text in theirs]
    assert all(text not in theirs for _, text in done), "the budget of our peers' script is written in another way"
    for block in blocks(page):
        if block.language == "python" and block.text not in theirs:
            text = re.sub(r"env_steps=[\d_]+", "env_steps=64", block.text)
            done.append(("python", re.sub(r"n_eval_episodes=\d+", "n_eval_episodes=2", text)))
        # Exports, videos and checks of scripts take seconds each and have tests of their own.
        runs = [c for c in block.commands() if c[0] == "gymnast" and c[1] not in ("export", "video")]
        runs = [[word for word in command if word != "--verify"] for command in runs]
        done += [("command", made_cheap(command)) for command in runs]
    # Those in the text are only asked whether they would train.
    texts = [shlex.split(text) for text in inline(page) if text.startswith("gymnast train ")]
    return [*done, *(("command", [*command, "--confirm"]) for command in texts)]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_works(page: str, folder: Path) -> None:
    """Files, scripts and commands of a page, in one folder, in processes of their own."""
    for name in ("ppo.yml", "my.yml"):
        shutil.copy(ZOO, folder / name)
    write_configs(page, folder)
    todo = steps(page)
    for step, done in zip(todo, do_all(todo, folder), strict=True):
        assert done.code == 0, f"{step[1]}\n{done.output}"


def write_configs(page: str, folder: Path) -> None:
    """YAML blocks name their file in a comment on top."""
    for block in blocks(page):
        if block.language == "yaml":
            path = folder / block.text.splitlines()[0].removeprefix("# ")
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.text)


def learning(config: Any) -> dict[str, Any]:
    """The settings that learning depends on."""
    return config.model_dump(mode="json", include={"env", "policy", "algo", "train"})


def test_both_ways_to_say_ppo_py_are_equal(folder: Path) -> None:
    """The command with CleanRL's names and the file; and they are the defaults of ppo.py."""
    write_configs("from-cleanrl", folder)
    file = resolve("CartPole-v1:cleanrl_ppo").config
    command = next(c for c in commands("from-cleanrl") if "--env-id" in c)
    given = resolve(
        "CartPole-v1:ppo", [w for w in command if "=" in w], settings={"train.env_steps": 499712, "seed": 1}
    )
    assert learning(given.config) == learning(file)
    algo: Any = file.algo
    assert (file.env.n_envs, algo.n_steps, algo.batch_size, algo.n_epochs) == (4, 128, 0.25, 4)
    assert (algo.gamma, algo.gae_lambda, algo.clip_range, algo.clip_range_vf) == (0.99, 0.95, 0.2, 0.2)
    assert (algo.ent_coef, algo.vf_coef * 2, algo.max_grad_norm, algo.target_kl) == (0.01, 0.5, 0.5, None)
    assert (algo.learning_rate.start, algo.learning_rate.end, algo.normalize_advantage) == (2.5e-4, 0, "batch")
    assert (algo.optimizer.id, algo.optimizer.eps, file.policy.hidden) == ("adam", 1e-5, [64, 64])
    assert not file.policy.normalize_obs and not algo.normalize_reward and not file.policy.shared_trunk
    assert file.train.env_steps == 500_000 // 512 * 512


def test_both_ways_to_say_the_sb3_script_are_equal(folder: Path) -> None:
    write_configs("from-sb3", folder)
    script = next(b.text for b in blocks("from-sb3") if "gymnast.train(" in b.text)
    calls = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)]
    (call,) = (node for node in calls if ast.unparse(node.func) == "gymnast.train")
    reference, keywords = ast.literal_eval(call.args[0]), {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    python = resolve(reference, settings=keywords).config
    assert learning(python) == learning(resolve("Acrobot-v1:sb3_ppo").config)


@pytest.mark.parametrize("page", PAGES)
def test_name_maps(page: str) -> None:
    """Our keys exist, and an old name is accepted where the table says so, and only there."""
    rows = [row for table in tables(page) if "old name" in table[0] for row in table[1:]]
    assert len(rows) > 20
    for old, ours, works, *_ in rows:
        keys = [parse_override(word)[0] if "=" in word else word for word in re.findall(r"`(.+?)`", ours)]
        paths = [find_key(key, "ppo") for key in keys]
        assert (works == "works") == bool(accepted(old.strip("`")) & set(paths)), f"{old}: {works}"
        assert works in ("works", "–")


SAMPLES = {"policy_kwargs": "dict(net_arch=[8])", "net_arch": "[8]", "activation_fn": "nn.ReLU"}
"""Values of names that stand for several keys; the others are switches."""


def accepted(name: str) -> set[tuple[str, ...]]:
    """The keys that a name stands for on the command line."""
    if name in TRANSLATIONS:
        origins = resolve("CartPole-v1:ppo", [f"{name}={SAMPLES.get(name, 'true')}", "lr=0.1"]).origins
        return {tuple(key.split(".")) for key, origin in origins.items() if f"({name}=" in origin}
    try:
        return {find_key(name, "ppo")}
    except UsageError:
        return set()


OTHERWISE = ("n_steps=256", "n_epochs=7", "clip_range_vf=0.9", "normalize_advantage=rollout")
"""What no option of the tables says, so that each changes something."""


@pytest.mark.parametrize(
    ("flags", "setting"),
    [row for page in PAGES for table in tables(page) if table[0][0].startswith("option of") for row in table[1:]],
)
def test_options_line_by_line(flags: str, setting: str, folder: Path) -> None:
    """Each line of the tables of options, typed with `gymnast train`: what comes of it is what the line says."""
    words = shlex.split(flags.strip("`"))
    start = [] if words[0] == "--env-id" else ["CartPole-v1:ppo", *OTHERWISE]
    parser: Any = typer.main.get_command(app)
    if setting.startswith("refused: "):
        with pytest.raises(UsageError, match=re.escape(setting.removeprefix("refused: "))):
            parser.commands["train"].make_context("train", [*start, *words])
        return
    typed = parser.commands["train"].make_context("train", [*start, *words]).params
    wanted = inspect.signature(asked).parameters
    names = [name for name in (*wanted, "env_steps", "vec_steps", "seed", "device") if name in typed]
    further = {"sinks": trackers(typed["track"]), "capture_video": typed["capture_video"]}
    found = asked(**{name: typed[name] for name in names}, **further).config
    settings = [] if setting.startswith("nothing: ") else shlex.split(setting.strip("`"))
    assert found == resolve("CartPole-v1:ppo", [*start[1:], *settings]).config
    assert settings == [] or start == [] or found != resolve("CartPole-v1:ppo", start[1:]).config


def test_every_option_is_listed() -> None:
    """What is translated or refused by name stands in a table."""
    told = "\n".join(PAGES.values())
    for option in (*PAIRS, *VALUES, *INSTEAD, *SILENT, *(f"--{name.replace('_', '-')}" for name in SWITCHES)):
        assert f"`{option}" in told or f" {option}" in told or option in ALSO, option


ALSO = {"-P", "-uuid", "-tb", "--conf-file", "--yaml-file", "--optimize-hyperparameters", "--exp-name"}
"""Other spellings of options that are listed."""


def test_every_alias_is_listed() -> None:
    """A name that is accepted is worth telling, unless it is nobody's option."""
    listed = {row[0].strip("`") for page in PAGES for table in tables(page) for row in table[1:]}
    unlisted = {"total-timesteps", "lr", "entropy_coef", "value_coef", "eval_episodes", "num_threads", "gym_packages"}
    assert {*ALIASES, *TRANSLATIONS} - listed == unlisted
    assert "eval-episodes 20" in PAGES["from-sb3"] and "lr=lin_2.5e-4" in PAGES["from-cleanrl"]


@pytest.mark.parametrize("page", PAGES)
def test_keys_and_metrics_in_the_text(page: str) -> None:
    catalogue = load_catalogue()
    words = inline(page)
    keys = [word.partition("=")[0] for word in words if SECTION.match(word)]
    metrics = [word for word in words if METRIC.fullmatch(word)]
    assert len(keys) > 20 and len(metrics) > 20
    for key in keys:
        find_key(key, "ppo")
    for metric in metrics:
        catalogue.resolve_name(metric)


@pytest.mark.parametrize(("page", "peer"), [("from-sb3", "SB3"), ("from-cleanrl", "CleanRL")])
def test_metric_maps(page: str, peer: str) -> None:
    """Each name of the peer is that metric of ours, and every alias in the catalogue is told."""
    catalogue = load_catalogue()
    rows = [row for table in tables(page) if table[0][0] == peer and "old name" not in table[0] for row in table[1:]]
    told = {theirs.strip("`"): ours.strip("`") for theirs, ours, *_ in rows}
    known = {
        alias.name: metric.name for metric in catalogue for who, alias in metric.aliases.items() if who == peer.lower()
    }
    assert told == {name: ours for name, ours in known.items() if name != "train/clip_range_vf"}


@pytest.mark.parametrize("name", [*(f"docs/{page}.md" for page in PAGES), "README.md"])
def test_links(name: str) -> None:
    """Relative links lead to files."""
    path = ROOT / name
    links = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []
