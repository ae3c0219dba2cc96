"""`gymnast env audit`: what rewards, episodes and observations look like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from gymnast.cli.agents import load_agent
from gymnast.cli.options import AsJson, Overrides, RunsDir, Trust, echo_json
from gymnast.cli.process import imported, leaving_at_once
from gymnast.console import Console
from gymnast.envs.choose import choose_vectorization
from gymnast.envs.make import make_envs
from gymnast.errors import UsageError, did_you_mean
from gymnast.evaluation.audit import audit as play
from gymnast.evaluation.audit import random_policy
from gymnast.later import Later
from gymnast.metrics.table import progress
from gymnast.metrics.verdict import spread
from gymnast.seeding import env_seeds
from gymnast.service.configs import resolved_config

if TYPE_CHECKING:
    import torch

    from gymnast.api import Agent
    from gymnast.config.schema import EnvConfig, RunConfig
    from gymnast.envs.vector import VectorEnv
    from gymnast.evaluation.audit import Act, Audit
else:
    torch = Later("torch")

RANDOM = "random"
N_ENVS = 16
BAR = 40


def audit(
    reference: Annotated[str, typer.Argument(metavar="ENV[:VARIANT]", help="CartPole-v1, my_module:MyEnv-v0 …")],
    overrides: Overrides = None,
    episodes: Annotated[int, typer.Option("--episodes", "-e", min=1, help="Whole episodes to play.")] = 100,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="random|RUN", help="Policy that plays: random, @last, a run's id …")
    ] = RANDOM,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the episodes.")] = 0,
    as_json: AsJson = False,
    trust: Trust = False,
    runs_dir: RunsDir = None,
) -> None:
    """Show what rewards, episodes and observations look like, and suggest n_steps and reward scaling."""
    config = resolved_config(reference, overrides or []).config
    with leaving_at_once():
        played, who = _play(config, policy, episodes, seed, runs_dir, trust)
    numbers = played.numbers()
    if as_json:
        echo_json({"env": config.env.id, "config": config.name, "policy": who, "seed": seed, **numbers})
        return
    _print(f"{config.name}, {who}, {episodes:,} episodes, seed {seed}", config, numbers)


def _play(
    config: RunConfig, policy: str, episodes: int, seed: int, runs_dir: Path | None, trust: bool
) -> tuple[Audit, str]:
    agent = None
    if policy != RANDOM:
        agent = _agent(policy, runs_dir, trust)
    imported()
    envs = make_envs(_comparable(config.env), min(N_ENVS, episodes))
    try:
        if agent is None:
            who, act = "random actions", random_policy(envs, seed)
        else:
            who, act = f"policy of {agent.source}", _policy(agent, envs, seed)
        with progress(Console(stderr=True), "playing", episodes) as bar:
            played = play(envs, act, episodes, env_seeds(seed, "eval_envs", envs.n_envs), bar.update)
    finally:
        envs.close()
    return played, who


def _agent(policy: str, runs_dir: Path | None, trust: bool) -> Agent:
    try:
        return load_agent(policy, None, None, False, runs_dir, trust)
    except UsageError as error:
        raise type(error)(f"{error}{did_you_mean(policy, [RANDOM])}") from None


def _comparable(config: EnvConfig) -> EnvConfig:
    """Envs whose episodes depend on the seed alone, not on what happens to be installed."""
    kind, _ = choose_vectorization(config, envpool=False)
    if config.vectorization != "auto":
        return config
    return config.model_copy(update={"vectorization": kind})


def _policy(agent: Agent, envs: VectorEnv, seed: int) -> Act:
    """Sampled actions of a trained policy, as in training; the most likely ones if it cannot be sampled."""
    from gymnast.evaluation.evaluate import tensors

    if (agent.policy.encoder.space, agent.action_space) != (envs.observation_space, envs.action_space):
        raise UsageError(
            f"{agent.source} plays {agent.config.env.id} with other observations or actions than this env has: "
            f"name the config it was trained on, {agent.config.name}."
        )
    generator = torch.Generator().manual_seed(seed)

    def act(row: Any) -> Any:
        with torch.inference_mode():
            noise = None
            if not agent.only_deterministic:
                noise = agent.policy.distribution.noise((envs.n_envs,), generator)
            mask = None
            if row.mask is not None:
                mask = torch.from_numpy(row.mask)
            return agent.policy.act(tensors(row.obs), noise, mask)["action"].numpy()

    return act


# ---- text ----------------------------------------------------------------------------------------------------------


def _print(title: str, config: RunConfig, numbers: dict[str, Any]) -> None:
    console = Console(highlight=False)
    console.print(title, style="bold", markup=False)
    for name, text in (*_reward_lines(numbers), *_episode_lines(numbers)):
        console.print(f"{name:>12}  {text}", markup=False, soft_wrap=True)
    _print_histogram(console, numbers)
    _print_observation(console, numbers["observation"], [part.name for part in config.spec.observation])
    suggested, scaling = numbers["n_steps"], numbers["scaling"]
    console.print("Suggestions", style="bold")
    n_steps = f"algo.n_steps={suggested['suggested']}: {suggested['reason']}."
    console.print(f"{'n_steps':>12}  {n_steps}", markup=False, soft_wrap=True)
    size = f"(mean size {scaling['target_size']:.3g} at gamma {scaling['gamma']})"
    console.print(f"{'reward':>12}  {scaling['advice']} {size}", markup=False, soft_wrap=True)


def _reward_lines(numbers: dict[str, Any]) -> list[tuple[str, str]]:
    gaps = numbers["gaps"]
    lines = [
        (
            "reward",
            f"{_spread(numbers['reward'])} over {numbers['steps']:,} steps, {numbers['reward']['zero']:.1%} zero",
        )
    ]
    if gaps["mean"] is None:
        between = "never"
        if gaps["share"] < 1:
            between = "no two in one episode"
    else:
        between = f"every {gaps['mean']:.3g} steps (median {gaps['median']:g}, longest wait {gaps['max']:,})"
    if gaps["share"] > 0.5:
        lines.append(("usual", f"{gaps['usual']:.4g} in {gaps['share']:.1%} of steps; another one: {between}"))
    else:
        lines.append(("usual", f"none: rewards differ from step to step ({gaps['usual']:.4g} is the most frequent)"))
    for one in numbers["outliers"]:
        values = _interval(one["min"], one["max"])
        where = f"{one['last_step']:.0%} of them in the last step of an episode, median step {one['median_step']:g}"
        lines.append(("outliers", f"{values}: {one['count']:,} ({one['share']:.2%}), {where}"))
    if not numbers["outliers"]:
        lines.append(("outliers", "none"))
    return lines


def _episode_lines(numbers: dict[str, Any]) -> list[tuple[str, str]]:
    ends = f"{numbers['terminated']:.1%} terminated, {numbers['truncated']:.1%} truncated"
    return [
        ("return", f"{_spread(numbers['returns'])}; {_quantiles(numbers['returns'])}"),
        ("length", f"{_spread(numbers['lengths'])}; {_quantiles(numbers['lengths'])}"),
        ("ends", ends),
    ]


def _interval(low: float, high: float) -> str:
    if low == high:
        return f"{low:.4g}"
    return f"{low:.4g} … {high:.4g}"


def _spread(values: dict[str, Any]) -> str:
    return f"{values['mean']:.4g} ± {spread(values['std'], values['mean'])}, {values['min']:.4g} … {values['max']:.4g}"


def _quantiles(values: dict[str, Any]) -> str:
    return " | ".join(f"{name} {value:.4g}" for name, value in values["quantiles"].items())


def _print_histogram(console: Any, numbers: dict[str, Any]) -> None:
    bins = numbers["histogram"]
    most = max(one["count"] for one in bins)
    console.print("Rewards", style="bold")
    for one in bins:
        label = _interval(one["low"], one["high"])
        bar = "█" * round(BAR * one["count"] / most) or ("▏" if one["count"] else "")
        console.print(f"{label:>24}  {bar} {one['count']:,}", markup=False, soft_wrap=True)


def _print_observation(console: Any, components: list[dict[str, Any]], names: list[str]) -> None:
    """Declared and observed ranges; names from the spec card where it names every component."""
    table = Table(title="Observation", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in ("component", "declared", "observed", ""):
        table.add_column(column, overflow="fold")
    for i, part in enumerate(components):
        if len(names) == len(components):
            name = names[i]
        else:
            name = part["name"]
        declared, observed = (
            f"{low + 0.0:.4g} … {high + 0.0:.4g}" for low, high in (part["declared"], part["observed"])
        )
        table.add_row(name, declared, observed, part["remark"], style="yellow" if part["remark"] else None)
    console.print(table)
