"""Names people bring along: other libraries' hyperparameter names and renamed environments."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gymnast.errors import UsageError

# Env, current version, former versions.
_VERSIONS: list[tuple[str, int, tuple[int, ...]]] = [
    ("Taxi", 4, (3,)),
    ("CliffWalking", 1, (0,)),
    ("Pendulum", 1, (0,)),
    ("FrozenLake", 1, (0,)),
    ("Blackjack", 1, (0,)),
    ("LunarLander", 3, (1, 2)),
    ("LunarLanderContinuous", 3, (1, 2)),
    ("BipedalWalker", 3, (1, 2)),
    ("BipedalWalkerHardcore", 3, (1, 2)),
    ("CarRacing", 3, (0, 1, 2)),
    *((env, 5, (2, 3, 4)) for env in ("HalfCheetah", "Hopper", "Walker2d", "Ant", "Humanoid", "Swimmer")),
    *((env, 5, (2, 4)) for env in ("Reacher", "Pusher", "InvertedPendulum", "InvertedDoublePendulum")),
    ("HumanoidStandup", 5, (2, 4)),
]
RENAMED_ENVS = {f"{env}-v{old}": f"{env}-v{current}" for env, current, former in _VERSIONS for old in former}
RENAMED_ENVS["FrozenLake8x8-v0"] = "FrozenLake8x8-v1"

# ViZDoom's scenarios as its package names them today, by the names of its papers and of gym wrappers before it.
_SCENARIOS = {"DefendTheCenter": "DefendCenter", "DefendTheLine": "DefendLine"} | {
    name: name
    for name in (
        "Basic",
        "DeadlyCorridor",
        "HealthGathering",
        "MyWayHome",
        "PredictPosition",
        "TakeCover",
        "Deathmatch",
    )
}
for _old, _new in _SCENARIOS.items():
    RENAMED_ENVS |= dict.fromkeys((f"VizDoom-{_old}-v0", f"Vizdoom{_new}-v0"), f"Vizdoom{_new}-v1")
    if _old != _new:
        RENAMED_ENVS[f"Vizdoom{_old}-v1"] = f"Vizdoom{_new}-v1"

# Ids of Gymnasium whose env is another one's with arguments, and how that one's variants for it are called.
_PRESETS = {
    "LunarLanderContinuous-v3": ("LunarLander-v3", "continuous_{}"),
    "FrozenLake8x8-v1": ("FrozenLake-v1", "{}_8x8"),
    "CliffWalkingSlippery-v1": ("CliffWalking-v1", "{}_slippery"),
}
_GAMES = (  # the 57 that agents are compared on; any word would take ids like Humanoid-v5 away from their envs
    "Alien|Amidar|Assault|Asterix|Asteroids|Atlantis|BankHeist|BattleZone|BeamRider|Berzerk|Bowling|Boxing|Breakout|Centipede|"
    "ChopperCommand|CrazyClimber|Defender|DemonAttack|DoubleDunk|Enduro|FishingDerby|Freeway|Frostbite|Gopher|Gravitar|Hero|"
    "IceHockey|Jamesbond|Kangaroo|Krull|KungFuMaster|MontezumaRevenge|MsPacman|NameThisGame|Phoenix|Pitfall|Pong|PrivateEye|"
    "Qbert|Riverraid|RoadRunner|Robotank|Seaquest|Skiing|Solaris|SpaceInvaders|StarGunner|Surround|Tennis|TimePilot|Tutankham|"
    "UpNDown|Venture|VideoPinball|WizardOfWor|YarsRevenge|Zaxxon"
)
_ATARI = re.compile(
    rf"(?P<game>{_GAMES})(?P<ram>-ram)?((NoFrameskip|Deterministic)-v(?P<old>[04])|-v5(?P<objects>_objects)?)"
)
_RANDOM_SKIP = re.compile(rf"(?P<game>{_GAMES})(?P<ram>-ram)?-v(?P<old>[04])")


def preset_of(env_id: str) -> tuple[str, str] | None:
    """The env under whose id the presets of `env_id` are, and the pattern of their names (`objects_{}`, for an algorithm).

    The old Atari ids say how the game is played: with sticky actions in v0 and v5, without in v4.
    """
    if env_id in _PRESETS:
        return _PRESETS[env_id]
    atari_id = env_id.removeprefix("ALE/") if env_id.endswith("-ram-v5") else env_id  # had the prefix for some years
    found = _ATARI.fullmatch(atari_id)
    if found is None:
        return None
    if found["objects"]:
        seen = "objects"
    elif found["ram"]:
        seen = "ram"
    else:
        seen = "rgb"
    sticky = "_deterministic" if found["old"] == "4" else ""
    return f"ALE/{found['game']}-v5", f"{seen}{sticky}_{{}}"


def unlike_any_preset(env_id: str) -> str:
    """What to say of `Pong-v0` and `Pong-v4`, which no preset plays as they were; empty for all other ids."""
    found = _RANDOM_SKIP.fullmatch(env_id)
    if found is None:
        return ""
    nearest = preset_of(f"{found['game']}{found['ram'] or ''}Deterministic-v{found['old']}")
    assert nearest is not None
    env, pattern = nearest
    return (
        f" It repeats every action 2 to 4 times at random. {env}:{pattern.format('ppo')} is the nearest preset and repeats "
        f"every action 4 times; env.module=ale_py makes {env_id} itself, without a preset."
    )


SETTLED_LATE = (
    "train.device",
    "train.threads",
    "train.overlap",
    "policy.precision",
    "algo.n_steps",
    "env.resume_every",
)
"""Keys that are decided only when the envs are there, where they are `auto` or not given."""

# Stable-Baselines3 / rl-zoo and CleanRL names of our keys.
ALIASES: dict[str, str] = {
    "wandb_project_name": "log.project",
    "wandb_entity": "log.entity",
    "n_timesteps": "train.env_steps",
    "total_timesteps": "train.env_steps",
    "total-timesteps": "train.env_steps",
    "n_envs": "env.n_envs",
    "num_envs": "env.n_envs",
    "num_steps": "algo.n_steps",
    "update_epochs": "algo.n_epochs",
    "clip_coef": "algo.clip_range",
    "lr": "algo.learning_rate",
    "entropy_coef": "algo.ent_coef",
    "value_coef": "algo.vf_coef",
    "norm_adv": "algo.normalize_advantage",
    "num_minibatches": "algo.batch_size",
    "env_kwargs": "env.kwargs",
    "env_id": "env.id",
    "env_wrapper": "env.wrappers",
    "eval_freq": "eval.every",
    "n_eval_episodes": "eval.episodes",
    "eval_episodes": "eval.episodes",
    "deterministic": "eval.deterministic",
    "save_freq": "train.checkpoint_every",
    "normalize": "policy.normalize_obs",
    "log_std_init": "policy.log_std_init",
    "torch_deterministic": "train.deterministic",
    "n_eval_envs": "eval.n_envs",
    "num_threads": "train.threads",
    "gym_packages": "env.module",
}


def _one_over(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 1:
        raise UsageError(f"'num_minibatches' must be a whole number of at least 1 (got {value!r}).")
    return 1.0 / value


def _on_off(value: Any) -> Any:
    if value in (0, 1):
        if value:
            return "batch"
        return "off"
    return value


# Aliases whose value means something else than ours.
CONVERSIONS: dict[str, Callable[[Any], Any]] = {"num_minibatches": _one_over, "norm_adv": _on_off}

# Names elsewhere for what is not a key here, and what to use instead.
NO_KEYS = {
    "save_model": "the best and the last checkpoint are always saved (train.checkpoint_every adds more)",
    "exp_name": "a run has an id, and `gymnast runs tag RUN NAME` gives it a name",
    "use_sde": "there is no gSDE; Box actions are Gaussian",
    "frame_stack": "frames are stacked by a wrapper: env.wrappers=[{id: observation_stack, size: 4}]",
}
