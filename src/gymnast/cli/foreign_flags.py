"""Options of rl-zoo and CleanRL, and any key written as an option, as the `KEY=VALUE` words that gymnast reads.

`--learning-rate 3e-4` is `learning_rate=3e-4`, and `--hyperparams gamma:0.98 n_envs:8` is `gamma=0.98 n_envs=8`. Words that the
command knows itself are left alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Sequence

from gymnast.errors import UsageError, did_you_mean

PAIRS = {"--hyperparams": "", "-params": "", "--env-kwargs": "env.kwargs.", "--eval-env-kwargs": "eval.env.kwargs."}
"""Options that take any number of `k:v`, and the prefix of each key here."""
SWITCHES = ("anneal_lr", "norm_adv", "clip_vloss", "cuda", "torch_deterministic")
"""CleanRL's switches: `--anneal-lr`, `--no-anneal-lr`, `--anneal-lr False`."""
VALUES = {"--vec-env": ("env.vectorization", {"dummy": "inprocess", "subproc": "workers"})}
TENSORBOARD = ("-tb", "--tensorboard-log")
"""Options that name a folder for event files; ours lie in the folder of the run."""
SILENT = ("-P", "--progress", "-uuid", "--uuid", "--save-model")
"""What they ask for is always on: a table, unique ids, checkpoints."""
_IMPORT = (
    "`gymnast config import-zoo FILE ENV` makes a preset of that file once, and `gymnast train ENV:zoo_ppo` trains it"
)
_SEARCH = "there is no search for hyperparameters yet"
INSTEAD = {
    **dict.fromkeys(("-conf", "--conf-file", "--yaml-file"), _IMPORT),
    **dict.fromkeys(("-optimize", "--optimize-hyperparameters"), _SEARCH),
    "--exp-name": "a run has an id, and `gymnast runs tag RUN NAME` gives it a name",
}
"""Options without a counterpart, and what to do."""
BUDGETS = ("-n", "--env-steps", "--n-timesteps", "--total-timesteps")
_PAIR = re.compile(r"[A-Za-z_][\w.]*[:=].*", re.DOTALL)
_KEY = re.compile(r"--[a-z][\w.-]*", re.IGNORECASE)
_SWITCHED = {"true": "true", "false": "false", "1": "true", "0": "false"}


def own_words(arguments: Sequence[str], known: Collection[str]) -> list[str]:
    """The arguments in gymnast's words; `known` are the options of the command, which are left alone.

    Settings come last: the first word that is no option names what to train.
    """
    refuse_two_budgets(arguments)
    kept: list[str] = []
    settings: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            kept += [word, *rest]
            break
        name, equals, value = word.partition("=")
        values = [value, *rest] if equals else rest
        if word == "--track" and (not rest or rest[0].startswith("-")):
            kept.append("--track=wandb")  # a switch in rl-zoo and CleanRL
            continue
        if not word.startswith("-") or name in known:
            kept.append(word)
            continue
        found = _translated(name, values)
        if found is None:
            if _KEY.fullmatch(name):
                raise UsageError(_no_option(name, known))
            kept.append(word)  # the command refuses it, or reads it as several short options
            continue
        words, used = found
        settings += words
        rest = values[used:]
    return [*kept, *settings]


def _translated(name: str, values: Sequence[str]) -> tuple[list[str], int] | None:
    """The settings that one option makes with the words after it, and how many of those it takes; None for unknown ones."""
    if name.startswith("--"):
        spelt = name.replace("_", "-")
    else:
        spelt = name
    if spelt in INSTEAD:
        raise UsageError(f"There is no {name}: {INSTEAD[spelt]}.")
    if spelt in SILENT:
        return [], 0
    if spelt in TENSORBOARD:
        return ["log.sinks=[tensorboard]"], 1
    if spelt in PAIRS:
        pairs = list(itertools.takewhile(_PAIR.fullmatch, values))
        if not pairs:
            raise UsageError(f"{name} needs settings, such as {name} gamma:0.98.")
        return [_setting(pair, PAIRS[spelt]) for pair in pairs], len(pairs)
    key = spelt.removeprefix("--").replace("-", "_")
    if key.removeprefix("no_") in SWITCHES:
        return _switch(key, values)
    if spelt not in VALUES and not _names_a_key(name, key):
        return None
    if not values:
        raise UsageError(f"{name} needs a value.")
    if spelt in VALUES:
        key, words = VALUES[spelt]
        return [f"{key}={words.get(values[0], values[0])}"], 1
    return [f"{key}={values[0]}"], 1


def _setting(pair: str, prefix: str) -> str:
    """`gamma:0.98` as `gamma=0.98`; rl-zoo's values are Python."""
    at = min(place for place in (pair.find(":"), pair.find("=")) if place >= 0)
    key, value = pair[:at], pair[at + 1 :]
    return f"{prefix}{key}={'null' if value == 'None' else value}"


def _switch(key: str, values: Sequence[str]) -> tuple[list[str], int]:
    if key not in SWITCHES:
        return [f"{key.removeprefix('no_')}=false"], 0
    said = None
    if values:
        said = _SWITCHED.get(values[0].lower())
    if said is None:
        return [f"{key}=true"], 0
    return [f"{key}={said}"], 1


def _no_option(name: str, known: Collection[str]) -> str:
    """With words that might have been meant: options of the command and keys, which are options too."""
    return f"There is no option {name}.{did_you_mean(name, [*known, *flags()])}"


def _names_a_key(name: str, key: str) -> bool:
    if not _KEY.fullmatch(name):
        return False
    from gymnast.cli.known_keys import is_key  # the schema: commands without such options do not wait for it

    return is_key(key)


def flags() -> list[str]:
    """Every key as an option, by its last part."""
    from gymnast.cli.known_keys import every_key  # the schema, as above

    return [f"--{key.rpartition('.')[2].replace('_', '-')}" for key in every_key()]


def refuse_two_budgets(arguments: Sequence[str]) -> None:
    """`-n 20000 --total-timesteps 1000` is one budget said twice: neither can be dropped in silence."""
    said: dict[str, str] = {}
    for word, after in itertools.zip_longest(arguments, arguments[1:], fillvalue=""):
        name, equals, value = word.partition("=")
        if word.startswith("-n") and not word.startswith("--") and len(word) > 2:
            name, equals, value = "-n", "=", word[2:].removeprefix("=")
        if name not in BUDGETS:
            continue
        amount = value if equals else after
        said.setdefault(_number(amount), f"{name} {amount}")
    if len(said) > 1:
        raise UsageError(f"Two budgets are given, {' and '.join(said.values())}: keep one.")


def _number(text: str) -> str:
    """1000 and 1e3 are the same."""
    try:
        return repr(float(text))
    except ValueError:
        return text
