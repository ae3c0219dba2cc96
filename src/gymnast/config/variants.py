"""Which variant a reference means: `ENV:VARIANT`, `ENV`, `ENV:ALGORITHM`, and `algo.id=…` over any of them.

A preset never takes algorithms away. Where an env has no variant for one, the choice names a donor: the variant whose env
section the run keeps, while the rest is the algorithm's defaults (`fallback`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gymnast.config import files
from gymnast.config.algorithms import CONFIGS, names
from gymnast.config.files import ConfigFile
from gymnast.errors import ConfigError, UsageError, did_you_mean

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_VERSION = re.compile(r"-v\d+$")


@dataclass(frozen=True)
class Choice:
    """What is going to be trained."""

    variant: str
    algorithm: str
    donor: str | None = None
    """The variant that gives the env section, where `variant` itself is in no file."""
    notice: str = ""


def split_reference(reference: str) -> tuple[str, str | None]:
    """`CartPole-v1:ppo` → env and variant; a `module:Env-v0` id keeps its colon, and so does `module:Env`."""
    head, colon, tail = reference.rpartition(":")
    if not colon:
        return reference, None
    if _VERSION.search(tail):
        return reference, None  # module:Env-v0 without a variant
    if _is_module(head) and infer_algorithm(tail) is None and not did_you_mean(tail, names()):
        return reference, None
    return head, tail


def _is_module(head: str) -> bool:
    """Whether this can only be a module: an env without a version is always named with the module that registers it."""
    return _MODULE.fullmatch(head) is not None and not files.env_files(head) and not head.endswith((".yaml", ".yml"))


def infer_algorithm(variant: str) -> str | None:
    """The algorithm a variant's name speaks of: `rgb_ppo` → ppo."""
    shipped = next((part for part in reversed(variant.split("_")) if part in CONFIGS), None)
    return shipped or next((name for name in names() if f"_{variant}".endswith(f"_{name}")), None)


def algorithm_of(variant: str, where: str) -> str:
    """The algorithm of a variant that no file says more about; a clear error where its name says none."""
    algorithm = infer_algorithm(variant)
    if algorithm is None:
        hint = did_you_mean(variant, names())
        raise ConfigError(
            f"{where}: name the algorithm (algo.id, or in the variant's name).{hint} Known: {_algorithms()}."
        )
    return algorithm


def _algorithms() -> str:
    return ", ".join(names())


# ---- variants in files -----------------------------------------------------------------------------------------------


def chain(variant: str, stack: list[ConfigFile]) -> list[tuple[ConfigFile, str]]:
    """(file, variant) pairs from the oldest ancestor to the variant itself."""
    pairs: list[tuple[ConfigFile, str]] = []
    seen: set[str] = set()
    name: str | None = variant
    where = stack[-1].label
    while name is not None:
        holders = [file for file in stack if name in file.variants]
        if not holders or name in seen:
            known = {known for file in stack for known in file.variants}
            unknown = f"extends unknown variant '{name}'.{did_you_mean(name, known)}"
            raise ConfigError(f"{where}: variant '{variant}' {'extends itself.' if name in seen else unknown}")
        seen.add(name)
        pairs = [(file, name) for file in holders] + pairs
        parents = [(file, (file.variants[name] or {}).get("extends")) for file in holders]
        child, (file, parent) = name, next((pair for pair in reversed(parents) if pair[1]), (stack[-1], None))
        where, name = file.where(("variants", child, "extends")), None if parent is None else str(parent)
    return pairs


def variant_algorithm(variant: str, stack: list[ConfigFile]) -> str:
    """The algorithm of a variant that is in a file."""
    for file, name in reversed(chain(variant, stack)):
        body = file.variants[name] or {}
        if isinstance(body.get("algo"), dict) and "id" in body["algo"]:
            return str(body["algo"]["id"])
        if infer_algorithm(name):
            return str(infer_algorithm(name))
    return algorithm_of(variant, stack[-1].where(("variants", variant)))


def with_algorithm(variant: str, old: str, new: str) -> str:
    """A variant's name for another algorithm: `objects_ppo` → `objects_a2c`, `ppo_masked` → `a2c_masked`, `best` → `best_a2c`."""
    found = list(re.finditer(rf"(?<![^_]){re.escape(old)}(?![^_])", variant))
    if not found:
        return f"{variant}_{new}"
    return variant[: found[-1].start()] + new + variant[found[-1].end() :]


# ---- the choice ------------------------------------------------------------------------------------------------------


def choose(env_id: str, variant: str | None, asked: str | None, stack: list[ConfigFile]) -> Choice:
    """The variant to train of an env with files. `asked` is the algorithm that `algo.id=…` names."""
    known = files.variant_names(stack)
    if asked not in names():
        asked = None  # the schema says what is wrong with it
    if variant is None and asked is None:
        variant = _default(env_id, known, stack)
    if variant is None:
        return _by_algorithm(env_id, str(asked), str(asked), known, stack)
    if variant in known:
        algorithm = variant_algorithm(variant, stack)
        if asked in (None, algorithm):
            return Choice(variant, algorithm)
        other = with_algorithm(variant, algorithm, str(asked))
        if other in known:
            return Choice(other, str(asked), notice=f"algo.id={asked}: running {env_id}:{other}, the preset for it.")
        return _fallback(env_id, other, str(asked), variant)
    named = infer_algorithm(variant)
    if named is not None and asked is not None and asked != named:
        variant, named = with_algorithm(variant, named, asked), asked
    if named is None or (variant != named and variant not in known and not _donors(variant, named, known, stack)):
        hint = did_you_mean(variant, [*known, *names()])
        listed = f"Known: {', '.join(known)}. Algorithms: {_algorithms()}."
        raise UsageError(f"{env_id} has no variant '{variant}'.{hint} {listed}")
    return _by_algorithm(env_id, variant, named, known, stack)


def _default(env_id: str, known: list[str], stack: list[ConfigFile]) -> str:
    """The default variant."""
    if "ppo" in known:
        return "ppo"
    if stack[0].patterns:
        return known[0]  # the first one of the base
    raise UsageError(f"Say which variant: {', '.join(f'{env_id}:{name}' for name in known)}.")


def _by_algorithm(env_id: str, variant: str, algorithm: str, known: list[str], stack: list[ConfigFile]) -> Choice:
    """A variant that is not in the files but names an algorithm."""
    if variant in known:
        return Choice(variant, algorithm)
    if donors := _donors(variant, algorithm, known, stack):
        return _fallback(env_id, variant, algorithm, donors[0])
    # The name of an algorithm and nothing else: the first variant that is for it.
    for name in known:
        if variant_algorithm(name, stack) == algorithm:
            return Choice(name, algorithm, notice=f"{env_id} has no variant '{variant}': running {env_id}:{name}.")
    donor = "ppo" if "ppo" in known else known[0]
    return _fallback(env_id, variant, algorithm, donor)


def _donors(variant: str, algorithm: str, known: list[str], stack: list[ConfigFile]) -> list[str]:
    """The variants that would be called so with this algorithm."""
    return [name for name in known if with_algorithm(name, variant_algorithm(name, stack), algorithm) == variant]


def _fallback(env_id: str, variant: str, algorithm: str, donor: str) -> Choice:
    notice = (
        f"{env_id} has no preset for {algorithm}: these are {algorithm}'s defaults for its spaces, not tuned, with the env "
        f"section of {env_id}:{donor}."
    )
    return Choice(variant, algorithm, donor, notice)
