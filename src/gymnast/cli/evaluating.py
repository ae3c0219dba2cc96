"""What `gymnast eval` does once it has its agent; imports torch."""

from __future__ import annotations

from dataclasses import replace

from gymnast.api.agent import Agent
from gymnast.cli.options import echo, echo_json
from gymnast.console import Console
from gymnast.envs.choose import playable
from gymnast.envs.registry import rules_of
from gymnast.metrics.table import progress
from gymnast.metrics.verdict import verdict_of
from gymnast.training.evaluating.setup import eval_settings
from gymnast.training.machine import keep_freed_memory


def play_and_tell(
    agent: Agent, episodes: int | None, steps: int | None, seed: int | None, deterministic: bool, *, as_json: bool
) -> None:
    """Play whole episodes and print the scores, the verdict and what differs from training."""
    keep_freed_memory()
    config = agent.config
    settings = [replace(setting, env=playable(setting.env)) for setting in eval_settings(config)]
    with progress(Console(stderr=True), "playing", agent.extent(episodes, steps).amount) as bar:
        result = agent.evaluate(episodes, steps=steps, seed=seed, deterministic=deterministic, on_episode=bar.update)
    verdict = verdict_of(result.metrics(), config.spec.solved_at, config.eval.standard_errors)
    if as_json:
        run = agent.run.id if agent.run else None
        where = {"run": run, "source": agent.source, "checkpoint": agent.checkpoint}
        echo_json({**where, "env": config.env.id, **result.as_json(), "verdict": verdict and verdict.as_json()})
        return
    echo(f"{config.name} {agent.source}")
    echo(result.sentence(config.spec.solved_at))
    if verdict is not None:
        echo(verdict.sentence())
    for setting in settings:
        if setting.name:
            echo(f"{setting.name}: {result.others[setting.name].sentence(config.spec.solved_at)}")
        rules = rules_of(setting.env)
        if rules is not None:
            echo(f"protocol: {rules.sentence()}")
        for key, value in setting.differences.items():
            echo(f"differs from training: {key} = {value}")
