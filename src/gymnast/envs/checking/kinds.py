"""Every kind of finding by its id, whether it is a fault, and what to do about it."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """Severity and advice of one kind of finding."""

    is_fault: bool
    advice: str


KINDS: dict[str, Kind] = {
    # making
    "make-crash": Kind(True, "Fix the constructor, or pass what it needs as env.kwargs.NAME=VALUE."),
    "obs-space": Kind(
        True, "Set self.observation_space in __init__ to a Box, Discrete, MultiDiscrete, MultiBinary, Tuple or Dict."
    ),
    "action-space": Kind(
        True,
        "Set self.action_space in __init__ to a Discrete, MultiDiscrete, MultiBinary, Box, or a Dict or Tuple of those.",
    ),
    "spaces-change": Kind(
        True, "Set both spaces once in __init__: networks are built for them before the first reset."
    ),
    # reset
    "reset-arguments": Kind(True, "Write: def reset(self, *, seed=None, options=None)."),
    "reset-crash": Kind(
        True, "Fix the exception; reset must work before the first episode, after an end, and in the middle."
    ),
    "reset-returns": Kind(True, "Return two things: observation, info (a dict, {} when there is nothing to say)."),
    "seed-ignored": Kind(
        True, "Begin reset with super().reset(seed=seed) and draw every random number from self.np_random."
    ),
    "unseeded-random": Kind(
        True,
        "Draw from self.np_random, which reset(seed=...) seeds: copies of the env then differ, and a run can be repeated.",
    ),
    "reset-not-repeatable": Kind(
        True, "Let the start depend only on the seed: no clock, no global generator, no order of a set."
    ),
    "state-leaks": Kind(True, "Set everything that step changes back to its start in reset."),
    # step
    "step-crash": Kind(True, "Take every action of action_space in every state, or make action_space smaller."),
    "step-returns": Kind(True, "Return five things: observation, reward, terminated, truncated, info."),
    "step-not-repeatable": Kind(
        True,
        "Let a step depend only on the state, the action and self.np_random: no clock, nothing shared between copies.",
    ),
    "action-mutated": Kind(
        True, "Work on a copy (action = np.array(action)): the caller keeps the array and learns from it."
    ),
    # observations
    "obs-type": Kind(
        True,
        "Return what observation_space describes: an array for Box, a whole number for Discrete, all keys for Dict.",
    ),
    "obs-shape": Kind(True, "Return arrays of the shape that observation_space gives, or change the space."),
    "obs-dtype": Kind(True, "Convert it (np.asarray(obs, self.observation_space.dtype)), or change the space's dtype."),
    "obs-nan": Kind(
        True, "Find the division, root or logarithm that gives NaN or infinity: one such number ruins the network."
    ),
    "obs-range": Kind(True, "Clip the observation, or widen the bounds of observation_space."),
    "obs-shared": Kind(
        True, "Return a copy (self.state.copy()): whoever keeps the observation sees it overwritten by the next one."
    ),
    "obs-changes": Kind(True, "Return a copy: an observation belongs to its receiver and must not change afterwards."),
    # reward, flags, info
    "reward-type": Kind(True, "Return one number: float(reward)."),
    "reward-nan": Kind(True, "Find the division, root or logarithm that gives NaN or infinity."),
    "terminated-type": Kind(True, "Return bool(terminated)."),
    "truncated-type": Kind(True, "Return bool(truncated)."),
    "info-type": Kind(True, "Return a dict, {} when there is nothing to say."),
    "mask-missing": Kind(True, 'Put "action_mask" into the info of every step and every reset.'),
    "mask-shape": Kind(True, "Give the mask one entry per action (for MultiDiscrete: all parts one after the other)."),
    "mask-empty": Kind(True, "Leave at least one action possible, or end the episode."),
    # ends
    "never-ends": Kind(
        True, "Register the env with max_episode_steps=..., or set env.time_limit: evaluation plays whole episodes."
    ),
    "may-not-end": Kind(
        False, "If they never do, register the env with max_episode_steps=..., or set env.time_limit for training."
    ),
    "limit-as-terminated": Kind(
        False, "If this is a time limit, return truncated=True there: terminated says that nothing more can be earned."
    ),
    # render and close
    "render-crash": Kind(True, 'Fix it, or leave "rgb_array" out of metadata["render_modes"].'),
    "render-frame": Kind(True, "Return a numpy array [height, width, 3] of uint8."),
    "render-changes": Kind(True, "Draw pictures from a copy of the state, with a generator of their own."),
    "close-crash": Kind(True, "Let close do nothing when there is nothing left to close."),
    # the whole
    "resume-not-exact": Kind(
        False,
        "Draw every random number from self.np_random, or from a generator that is an attribute of the env: those are saved.",
    ),
    "own-generator": Kind(
        False, "Begin reset with super().reset(seed=seed): tools that look at self.np_random expect it to be seeded."
    ),
    "gymnasium": Kind(True, "See gymnasium.utils.env_checker.check_env, which says so."),
    "gymnasium-warning": Kind(False, "A recommendation of Gymnasium's check_env; training works without."),
}
