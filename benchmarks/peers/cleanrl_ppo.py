"""CleanRL's ppo.py on CartPole-v1 with its own defaults, run by the interpreter in `.peers/cleanrl`.

The script is read from the installed package and executed as it is; one statement is added to its syntax tree at run
time, at the end of the loop over iterations: `if stop_rule(agent, rewards, dones, next_done, global_step): break`.
Everything else (TensorBoard writer, prints, annealing over 500,000 steps) stays. Its own episode log reports at most
one episode per vector step, so the returns for the stop rule are added up from the rollout arrays instead.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import sys
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stop_rule import StopRule, add_options

HOOK = "if stop_rule(agent, rewards, dones, next_done, global_step): break"


def with_hook(source: str) -> ast.Module:
    """The script's syntax tree with the hook as the last statement of its training loop."""
    tree = ast.parse(source)
    main = next(node for node in reversed(tree.body) if isinstance(node, ast.If))
    loops = [node for node in main.body if isinstance(node, ast.For)]
    if len(loops) != 1:
        raise SystemExit(f"expected one training loop in CleanRL's ppo.py, found {len(loops)}: another version?")
    loops[0].body.append(ast.parse(HOOK).body[0])
    return ast.fix_missing_locations(tree)


class Hook:
    """Adds up episode returns over the rollouts and asks the shared stop rule after every update."""

    def __init__(self, rule: StopRule) -> None:
        self.rule = rule
        self.returns: deque[float] = deque(maxlen=100)
        self.running: Any = 0.0
        self.env_steps, self.solved, self.agent = 0, False, None

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Most likely actions."""
        with torch.no_grad():
            return self.agent.actor(torch.as_tensor(observation)).argmax(dim=1).numpy()

    def __call__(self, agent: Any, rewards: Any, dones: Any, next_done: Any, global_step: int) -> bool:
        """`rewards` and `dones` are `[T, N]`; `dones[t]` says that the episode before step t is over."""
        self.agent, self.env_steps = agent, global_step
        ended = torch.cat([dones[1:], next_done[None]]).numpy().astype(bool)
        for reward, over in zip(rewards.numpy(), ended):
            self.running = self.running + reward
            if over.any():
                self.returns.extend(self.running[over].tolist())
                self.running[over] = 0.0
        mean = sum(self.returns) / len(self.returns) if self.returns else None
        self.solved = self.rule.met(mean, global_step, self.act)
        return self.solved


def main() -> None:
    """Run the script to the bar, or to the end of its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    options = parser.parse_args()
    path = Path(importlib.util.find_spec("cleanrl.ppo").origin)
    hook = Hook(StopRule(options))
    sys.argv = [str(path), "--seed", str(options.seed)]
    scope = {"__name__": "__main__", "__file__": str(path), "stop_rule": hook}
    exec(compile(with_hook(path.read_text()), str(path), "exec"), scope)
    if not hook.solved:
        hook.rule.judge(hook.env_steps, hook.act)
    hook.rule.report(hook.env_steps)


if __name__ == "__main__":
    main()
