"""The game of a trained agent; imports torch."""

from __future__ import annotations

from gymnast.api import Agent
from gymnast.cli.options import echo
from gymnast.cli.playing import Game
from gymnast.envs.choose import playable
from gymnast.play.policy import PolicyPlayer
from gymnast.training.evaluating.setup import eval_env_config


def game_of(agent: Agent, mode: str, deterministic: bool) -> Game:
    """The env as an evaluation of the agent has it; what differs from training is said."""
    env, differences = eval_env_config(agent.config)
    for key, value in differences.items():
        echo(f"differs from training: {key} = {value}", err=True)
    about = {
        "run": agent.run.id if agent.run else agent.source,
        "checkpoint": agent.checkpoint,
        "config": agent.config.name,
        "deterministic": deterministic,
        "differences": differences,
    }
    policy = PolicyPlayer(agent.policy, deterministic=deterministic)
    title = f"{agent.config.name}, {agent.source}"
    return Game(title, playable(env), agent.config.spec, mode, about, policy)
