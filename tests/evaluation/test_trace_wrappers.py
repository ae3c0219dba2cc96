"""What the policy chose and what the env was given, where a wrapper stands between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs
from gymnasium.envs.classic_control import CartPoleEnv, PendulumEnv
from test_trace import make

from gymnast.envs.actions import plain
from gymnast.evaluation.trace import EpisodeTrace, record_episode

CARTPOLE = {"id": "CartPole-v1"}
STICKY = {"id": "sticky_actions", "probability": 0.5}
SKIP = {"id": "frame_skip", "skip": 3}


def play(env: dict[str, Any]) -> EpisodeTrace:
    """An episode of a policy that likes all actions alike."""
    policy, config = make(env)
    policy.actor.layers[-1].weight.data.zero_()
    return record_episode(policy, config.env, seed=3, deterministic=False)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the bare env is given."""
    given: list[Any] = []
    for kind in (CartPoleEnv, PendulumEnv):

        def step(self: Any, action: Any, real: Any = kind.step) -> Any:
            given.append(plain(action))
            return real(self, action)

        monkeypatch.setattr(kind, "step", step)
    return given


def test_sticky_actions_show_in_the_trace(log: list[Any]) -> None:
    """Half of the time the last action again: what the env was given stands beside what was chosen."""
    trace = play({**CARTPOLE, "wrappers": [STICKY]})
    assert trace.executed == log
    assert len(trace.executed) == len(trace.actions) == len(trace)
    assert trace.executed != trace.actions
    for before, chosen, executed in zip(trace.executed, trace.actions[1:], trace.executed[1:], strict=False):
        assert executed in (before, chosen)
    assert trace.repeats is None


def test_without_such_a_wrapper_both_are_the_same(log: list[Any]) -> None:
    """Nothing between them."""
    trace = play({**CARTPOLE, "wrappers": [{"id": "frame_stack"}]})
    assert trace.executed == trace.actions == log


@pytest.mark.parametrize("skip", [SKIP, {"id": "frame_skip", "skip": [1, 3]}, {"id": "frame_skip", "choices": [1, 3]}])
def test_skipped_frames_show_one_by_one(log: list[Any], skip: dict[str, Any]) -> None:
    """With sticky actions inside, the frames of one step can differ."""
    trace = play({**CARTPOLE, "wrappers": [STICKY, skip]})
    assert trace.repeats == [len(frames) for frames in trace.executed]
    assert [action for frames in trace.executed for action in frames] == log
    assert sum(trace.repeats) == trace.ret == len(log)
    chosen = [action[0] if isinstance(action, list) else action for action in trace.actions]
    assert any(set(frames) != {action} for action, frames in zip(chosen, trace.executed, strict=True))
    assert trace.fps < 50


def test_noise_on_box_actions_shows(log: list[Any]) -> None:
    """Chosen as the policy sampled it, executed as the pendulum got it."""
    env = {"id": "Pendulum-v1", "time_limit": 25, "wrappers": [{"id": "action_noise", "std": 0.5}]}
    trace = play(env)
    assert trace.executed == log
    chosen, executed = np.clip(trace.actions, -2, 2), np.array(trace.executed)
    assert 0.2 < (executed - chosen).std() < 0.8
    assert np.abs(executed).max() <= 2.0
