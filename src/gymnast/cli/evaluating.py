"""What `gymnast eval` does once it has its agent; imports torch."""

from __future__ import annotations

from dataclasses import replace

from gymnast.amounts import count
from gymnast.api.agent import Agent
from gymnast.cli.options import echo, echo_json
from gymnast.config.tasks import task_thresholds
from gymnast.console import Console
from gymnast.envs.choose import playable
from gymnast.envs.registry import rules_of
from gymnast.evaluation.by_parameter import Part
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.table import progress
from gymnast.metrics.verdict import shown, spread
from gymnast.training.evaluating.setup import eval_settings
from gymnast.training.keeping.stopping import make_rules
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
    rules = make_rules(config, load_catalogue())
    verdict = rules.verdict(result.metrics())
    if as_json:
        run = agent.run.id if agent.run else None
        where = {"run": run, "source": agent.source, "checkpoint": agent.checkpoint}
        echo_json({**where, "env": config.env.id, **result.as_json(), "verdict": verdict and verdict.as_json()})
        return
    echo(f"{config.name} {agent.source}")
    echo(result.sentence(rules.threshold))
    if verdict is not None:
        echo(verdict.sentence())
    thresholds = task_thresholds(config)
    for setting in settings:
        if setting.name:
            threshold = thresholds.get(setting.name, rules.threshold)
            echo(f"{setting.name}: {result.others[setting.name].sentence(threshold)}")
        played = rules_of(setting.env)
        if played is not None:
            echo(f"protocol: {played.sentence()}")
        for key, value in setting.differences.items():
            echo(f"differs from training: {key} = {value}")
        _tell_by_parameter(result.others.get(setting.name, result).by_parameter())


def _tell_by_parameter(parts: list[Part]) -> None:
    """A line per part of each parameter's range."""
    if not parts:
        return
    echo("return by parameter:")
    names, labels = (max(len(getattr(part, key)) for part in parts) for key in ("parameter", "label"))
    for part in parts:
        score = "no episode"
        if part.mean is not None and part.std is not None:
            score = f"{shown(part.mean)} ± {spread(part.std, part.mean)} over {count(part.episodes, 'episode')}"
        echo(f"  {part.parameter:<{names}}  {part.label:<{labels}}  {score}")
