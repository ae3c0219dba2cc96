"""The spec card of one env: spaces, labels, thresholds, reference scores, and what the wrappers make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gymnast.config.spec import EnvSpec
from gymnast.service.configs import resolved_config


@dataclass(frozen=True)
class WrapperEntry:
    """One wrapper, in the order of application, and the spaces behind it."""

    wrapper: str
    observation_space: str
    action_space: str


@dataclass(frozen=True)
class EnvCard:
    """What is known of one env."""

    id: str
    notices: tuple[str, ...]
    observation_space: str
    action_space: str
    wrappers: tuple[WrapperEntry, ...]
    wrapper_lines: tuple[str, ...]
    """The same for people, with the env itself first."""
    protocol: dict[str, Any] | None
    """The rules of an Atari game; None for all others."""
    protocol_words: str | None
    time_limit: int | None
    """Steps after which an episode is cut off."""
    vectorization: str
    """How its copies would be stepped here, and why."""
    vectorization_reason: str
    reward_terms: dict[str, str]
    """What is learned from besides the env's own reward, by the name of the term."""
    randomised: dict[str, str]
    """What is drawn for every episode."""
    parameters: dict[str, str]
    """What `env.randomise` could draw, and what that is."""
    spec: EnvSpec


def env_card(reference: str) -> EnvCard:
    """The card of an env, or of a variant with a spec of its own. Makes the env once, in this process, without torch."""
    # Gymnasium, and the package of the env: nothing else of this layer needs them.
    from gymnast.envs.choose import choose_for_run
    from gymnast.envs.randomising import declared_parameters
    from gymnast.envs.registry import rules_of
    from gymnast.envs.time_limits import time_limit_of
    from gymnast.envs.wrappers.show import layers, lines, short

    resolved = resolved_config(reference)
    env, spec = resolved.config.env, resolved.config.spec
    wrapped = layers(env)
    rules = rules_of(env)
    kind, reason = choose_for_run(resolved.config)
    wrappers = [WrapperEntry(one.text, short(one.observation_space), short(one.action_space)) for one in wrapped[1:]]
    return EnvCard(
        id=env.id,
        notices=tuple(resolved.notices),
        observation_space=str(wrapped[0].observation_space),
        action_space=str(wrapped[0].action_space),
        wrappers=tuple(wrappers),
        wrapper_lines=tuple(lines(wrapped)),
        protocol=None if rules is None else rules.protocol(),
        protocol_words=None if rules is None else rules.sentence(),
        time_limit=time_limit_of(env) or spec.horizon,
        vectorization=kind,
        vectorization_reason=reason,
        reward_terms={} if env.rewards is None else {name: str(term) for name, term in env.rewards.terms.items()},
        randomised={name: str(drawn) for name, drawn in env.randomise.items()},
        parameters={name: one.about for name, one in declared_parameters(env).items()},
        spec=spec,
    )
