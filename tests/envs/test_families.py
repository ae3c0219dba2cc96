"""Box2D, MuJoCo, MinAtar and MiniGrid behind the contract: the envs of the packages, to the bit, and exactly resumable."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gymnast.config.load import resolve
from gymnast.config.names import RENAMED_ENVS
from gymnast.config.schema import EnvConfig
from gymnast.envs.actions import converter, random_actions
from gymnast.envs.families.minatar import games as minatar
from gymnast.envs.families.mujoco import drawing as mujoco
from gymnast.envs.make import make_envs, make_one
from gymnast.envs.registry import env_spec
from gymnast.envs.vector import EndedEpisode, StepRow, VectorEnv
from gymnast.errors import EnvError, UsageError
from gymnast.runs import tree

BOX2D = ["LunarLander-v3", "LunarLanderContinuous-v3", "BipedalWalker-v3"]
MUJOCO = ["HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5"]
MINATAR = [f"MinAtar/{game}-v1" for game in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")]
MINIGRID = ["MiniGrid-Empty-5x5-v0", "MiniGrid-DoorKey-5x5-v0", "MiniGrid-FourRooms-v0"]
ENVS = [*BOX2D, *MUJOCO, *MINATAR, *MINIGRID]
ONE_OF_EACH = ["BipedalWalker-v3", "Ant-v5", "MinAtar/Seaquest-v1", "MiniGrid-DoorKey-5x5-v0"]
LIMIT = 35
SEEDS = [11, 12, 13]


def config(env_id: str, **changes: Any) -> EnvConfig:
    """Short episodes, in this process."""
    return EnvConfig.model_validate({"id": env_id, "time_limit": LIMIT, "vectorization": "inprocess", **changes})


def started(envs: VectorEnv, seeds: list[int]) -> StepRow:
    """A fresh row after a reset."""
    row = envs.new_row()
    envs.reset(seeds, row)
    return row


def some_actions(space: gym.Space, steps: int, seed: int = 0) -> list[np.ndarray]:
    """Uniform ones for all slots."""
    rng = np.random.default_rng(seed)
    return [random_actions(space, len(SEEDS), rng) for _ in range(steps)]


def parts(obs: Any) -> dict[str, np.ndarray]:
    """Observations by name."""
    return obs if isinstance(obs, dict) else {"": obs}


def shown(row: StepRow, ended: Any) -> list[Any]:
    """Everything a step delivers, comparable to the bit."""
    arrays = [*parts(row.obs).values(), row.reward, row.terminated, row.truncated]
    return [*(array.tobytes() for array in arrays), [episode(one) for one in ended]]


def episode(one: EndedEpisode) -> tuple[Any, ...]:
    """An ended episode with its last observation."""
    final = [np.asarray(value).tobytes() for value in parts(one.final_obs).values()]
    return one.index, one.ret, one.length, one.terminated, final


def played(envs: VectorEnv, row: StepRow, actions: list[np.ndarray]) -> list[Any]:
    """The trace of some steps."""
    return [shown(row, envs.step(action, row)) for action in actions]


# --- the packages' envs, step by step ---------------------------------------------------------------------------------


def by_hand(env_id: str) -> Callable[[], gym.Env]:
    """The package's own env where we change nothing in it; else ours, alone."""
    if env_id in MINIGRID or env_id == "BipedalWalker-v3":
        return lambda: make_one(config(env_id))
    return lambda: gym.make(env_spec(env_id), max_episode_steps=LIMIT, disable_env_checker=True)


@pytest.mark.parametrize("env_id", ENVS)
def test_every_transition_is_that_of_a_single_env(env_id: str) -> None:
    """Rows, flags, final observations and counts over several episodes of each slot, equal to envs stepped by hand."""
    ends = 0
    with closing(make_envs(config(env_id), len(SEEDS))) as envs:
        row, convert = started(envs, SEEDS), converter(envs.action_space)
        single = [by_hand(env_id)() for _ in SEEDS]
        first = [env.reset(seed=seed)[0] for env, seed in zip(single, SEEDS, strict=True)]
        totals, lengths = [0.0] * len(SEEDS), [0] * len(SEEDS)
        assert_rows(row, first)
        for actions in some_actions(envs.action_space, 80):
            ended = {one.index: one for one in envs.step(actions, row)}
            for i, (env, action) in enumerate(zip(single, convert(actions), strict=True)):
                obs, reward, terminated, truncated, _ = env.step(action)
                totals[i], lengths[i] = totals[i] + float(reward), lengths[i] + 1
                assert row.reward[i] == np.float32(reward)
                assert (row.terminated[i], row.truncated[i]) == (terminated, truncated)
                assert (i in ended) == (terminated or truncated)
                first[i] = obs
                if i in ended:
                    one = ended[i]
                    assert (one.ret, one.length, one.terminated) == (totals[i], lengths[i], terminated)
                    for name, value in parts(obs).items():
                        assert np.array_equal(parts(one.final_obs)[name], value)
                    first[i], totals[i], lengths[i] = env.reset()[0], 0.0, 0
                    ends += 1
            assert_rows(row, first)
    assert ends >= 6


def assert_rows(row: StepRow, observations: list[Any]) -> None:
    """Each slot's row holds its env's observation."""
    for name, array in parts(row.obs).items():
        for i, obs in enumerate(observations):
            assert np.array_equal(array[i], np.asarray(parts(obs)[name]).astype(array.dtype))


@pytest.mark.parametrize("env_id", ONE_OF_EACH)
def test_worker_processes_give_the_same_bits(env_id: str) -> None:
    """Also after their state moved from this process into them."""
    actions = some_actions(make_one(config(env_id)).action_space, 90)
    with (
        closing(make_envs(config(env_id), 3)) as envs,
        closing(make_envs(config(env_id, vectorization="workers", n_workers=2), 3)) as pool,
    ):
        row, pool_row = started(envs, SEEDS), started(pool, SEEDS)
        assert played(envs, row, actions[:60]) == played(pool, pool_row, actions[:60])
        pool.load_state(envs.save_state())
        assert played(envs, row, actions[60:]) == played(pool, pool_row, actions[60:])


@pytest.mark.parametrize("env_id", [env_id for env_id in ENVS if env_id != "MiniGrid-Empty-5x5-v0"])
def test_seeds_decide_everything(env_id: str) -> None:
    """Equal seeds give equal episodes, whatever was played before; slots with other seeds see other things."""
    with closing(make_envs(config(env_id), 3)) as envs:
        actions = [np.broadcast_to(action[:1], action.shape) for action in some_actions(envs.action_space, 60)]
        first = played(envs, started(envs, SEEDS), actions)
        assert played(envs, started(envs, SEEDS), actions) == first
        assert played(envs, started(envs, [21, 22, 23]), actions) != first
        row = started(envs, SEEDS)
        seen: list[list[bytes]] = [[], [], []]
        for action in actions[:30]:
            for i in range(3):
                seen[i] += [array[i].tobytes() for array in parts(row.obs).values()]
            envs.step(action, row)
    assert seen[0] != seen[1] != seen[2] != seen[0]


# --- state ------------------------------------------------------------------------------------------------------------


def through_a_checkpoint(state: dict[str, Any]) -> dict[str, Any]:
    """As strict JSON and tensors, the way it lies on the disk."""
    tensors: dict[str, Any] = {}
    text = json.dumps(tree.encode(state, tensors, "envs"), allow_nan=False)
    return tree.decode(json.loads(text), tensors)


@pytest.mark.parametrize(
    "env_id", [*ENVS, "Humanoid-v5", "Reacher-v5", "CarRacing-v3", "MiniGrid-Dynamic-Obstacles-6x6-v0"]
)
def test_saved_in_the_middle_of_an_episode_it_goes_on_exactly(env_id: str) -> None:
    """In the first episode after a seed and in later ones, into envs that have played something else."""
    few = env_id == "CarRacing-v3"  # 10 ms a step
    with closing(make_envs(config(env_id), 3)) as envs, closing(make_envs(config(env_id), 3)) as others:
        row, other_row = started(envs, SEEDS), started(others, [4, 5, 6])
        played(others, other_row, some_actions(envs.action_space, 3 if few else LIMIT + 10, seed=1))
        for block in range(1 if few else 2):
            played(envs, row, some_actions(envs.action_space, 3 if few else 17 + 30 * block, seed=2 + block))
            others.load_state(through_a_checkpoint(envs.save_state()))
            after = some_actions(envs.action_space, 5 if few else 100, seed=4 + block)
            assert played(envs, row, after) == played(others, other_row, after)


def test_how_each_family_is_saved() -> None:
    """By its fields where they can be had, else by its actions."""
    for env_ids, method in ((MUJOCO + MINATAR, "snapshot"), (BOX2D + MINIGRID, "replay")):
        for env_id in env_ids:
            with closing(make_envs(config(env_id), 1)) as envs:
                assert envs.exact_resume == method, env_id


def test_actions_of_ended_episodes_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """What replay needs does not grow with the run."""
    monkeypatch.setattr("gymnast.envs.replay.KEPT_IN_VAIN", 10)
    with closing(make_envs(config("LunarLander-v3", time_limit=8), 3)) as envs:
        row = started(envs, SEEDS)
        played(envs, row, some_actions(envs.action_space, 100))
        kept: Any = envs
        assert len(kept._episodes._actions) < 10 + 2 * 8
        assert [len(state["actions"]) for state in envs.save_state()["envs"]] == [100 % 8] * 3


# --- Box2D ------------------------------------------------------------------------------------------------------------


def test_a_walkers_world_has_no_memory() -> None:
    """The package's env gives other numbers for the same seed after another episode; its first episode is ours."""

    def episode_of(env: gym.Env) -> bytes:
        env.reset(seed=5)
        rng = np.random.default_rng(0)
        return b"".join(env.step(rng.uniform(-1, 1, 4).astype(np.float32))[0].tobytes() for _ in range(LIMIT))

    ours, theirs = make_one(config("BipedalWalker-v3")), gym.make("BipedalWalker-v3")
    first = episode_of(ours)
    assert first == episode_of(theirs)
    assert [episode_of(ours) for _ in range(3)] == [first] * 3


# --- MuJoCo -----------------------------------------------------------------------------------------------------------


def test_mujoco_leaves_no_log_file_and_says_nothing_of_old_keywords(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Half-Cheetah's file has a deprecated keyword, of which MuJoCo would tell for every env."""
    monkeypatch.chdir(tmp_path)
    with closing(make_envs(config("HalfCheetah-v5"), 2)) as envs:
        started(envs, [1, 2])
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""


def test_mujoco_without_a_way_to_draw_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only when frames are wanted: training needs none."""
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(mujoco, "LIBRARIES", {"egl": "libNothing.so.1"})
    mujoco._found.cache_clear()
    try:
        with pytest.raises(EnvError, match=r"Hopper-v5 cannot render. MuJoCo needs .* apt-get install libegl1"):
            make_one(config("Hopper-v5"), "rgb_array")
        make_one(config("Hopper-v5")).close()
    finally:
        mujoco._found.cache_clear()


def test_workers_start_after_mujoco_has_drawn() -> None:
    """A process that has drawn must never fork: the child would hang in the graphics library."""
    with closing(make_envs(config("Hopper-v5"), 1, render_mode="rgb_array")) as drawing:
        started(drawing, [1])
        assert drawing.render(0) is not None
        pool_config = config("Hopper-v5", vectorization="workers", n_workers=1, worker_timeout=30)
        with closing(make_envs(pool_config, 3)) as pool:
            played(pool, started(pool, SEEDS), some_actions(pool.action_space, 3))


# --- MinAtar ----------------------------------------------------------------------------------------------------------


def test_a_seed_forgets_the_last_action() -> None:
    """Sticky actions would carry the last action of the game before into a freshly seeded one."""
    env = make_one(config("MinAtar/Breakout-v1", kwargs={"sticky_action_prob": 1.0}))
    traces = []
    for last in (0, 1, 2):
        env.reset(seed=1)
        env.unwrapped.game.last_action = last  # type: ignore[attr-defined]
        env.reset(seed=3)
        traces.append([env.step(2)[0].tobytes() for _ in range(5)])
    assert traces[0] == traces[1] == traces[2]


def test_minatar_comes_without_its_plotting_packages() -> None:
    """Two seconds of import, a warning, and a log handler for everybody."""
    code = (
        "import sys, logging; from gymnast.config.schema import EnvConfig; from gymnast.envs.make import make_one\n"
        "make_one(EnvConfig(id='MinAtar/Breakout-v1')).reset(seed=0)\n"
        "print([m for m in ('seaborn', 'pandas', 'matplotlib') if m in sys.modules], logging.root.handlers)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[] []", "")


def test_minatar_colours() -> None:
    """Black for nothing, then the colours of the package's own window (seaborn's cubehelix, four kinds of things)."""
    assert minatar._palette(4).tolist() == [[0, 0, 0], [22, 61, 78], [84, 121, 47], [208, 126, 147], [193, 202, 243]]


# --- MiniGrid ---------------------------------------------------------------------------------------------------------


def test_minigrid_cells_are_one_hot() -> None:
    """Each cell is one object, one colour and one state; the numbers can be read back; no text is left."""
    coded, raw = (make_one(config("MiniGrid-DoorKey-8x8-v0", kwargs={"encoding": name})) for name in ("one_hot", "raw"))
    rng = np.random.default_rng(0)
    obs, numbers = coded.reset(seed=3)[0], raw.reset(seed=3)[0]
    for action in rng.integers(0, 7, 60).tolist():
        assert set(obs) == set(numbers) == {"image", "direction"}
        groups = np.split(obs["image"], [11, 17], axis=-1)
        assert all((group.sum(-1) == 1).all() for group in groups)
        assert np.array_equal(np.stack([group.argmax(-1) for group in groups], -1), numbers["image"])
        assert coded.observation_space.contains(obs)
        obs, numbers = coded.step(action)[0], raw.step(action)[0]


def test_minigrids_default_is_one_hot_and_other_names_are_refused() -> None:
    """What `gymnast train MiniGrid-…` reads."""
    with closing(make_envs(config("MiniGrid-Empty-5x5-v0"), 2)) as envs:
        row = started(envs, [1, 2])
        assert parts(row.obs)["image"].shape == (2, 7, 7, 20) and parts(row.obs)["image"].dtype == np.bool_
    with pytest.raises(UsageError, match="one of one_hot, raw"):
        make_one(config("MiniGrid-Empty-5x5-v0", kwargs={"encoding": "pixels"}))


# --- pictures, ids, missing packages ----------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", ["LunarLander-v3", *ONE_OF_EACH])
def test_frames_without_a_display(env_id: str) -> None:
    """Pictures that change, one env after the other in one process."""
    with closing(make_envs(config(env_id), 1, render_mode="rgb_array")) as envs:
        row = started(envs, [3])
        frames = []
        for action in some_actions(envs.action_space, 12):
            frames.append(np.array(envs.render(0)))
            envs.step(action[:1], row)
    assert {(frame.dtype, frame.ndim, frame.shape[-1]) for frame in frames} == {(np.dtype(np.uint8), 3, 3)}
    assert len({frame.tobytes() for frame in frames}) > 1


def test_former_ids_run_as_the_current_ones() -> None:
    """Each leads to an env that is registered and current; the user is told."""
    for former, current in RENAMED_ENVS.items():
        assert env_spec(current).id == current, former
    resolved = resolve("Swimmer-v3:ppo", generic=lambda *_: {"train": {"env_steps": 10}})
    assert resolved.config.env.id == "Swimmer-v5"
    assert resolved.notices == ["Swimmer-v3 is now Swimmer-v5; running that."]


def test_a_missing_package_is_named_with_its_install_line() -> None:
    """Also for envs that Gymnasium registers whether or not they can be made."""
    code = """
import sys
for name in ("mujoco", "Box2D", "minatar", "minigrid", "vizdoom"):
    sys.modules[name] = None
from gymnast.config.schema import EnvConfig
from gymnast.envs.make import make_one
from gymnast.errors import MissingPackageError
names = ("Hopper-v5", "LunarLander-v3", "BipedalWalker-v3", "MinAtar/Asterix-v0", "MiniGrid-Empty-5x5-v0", "VizdoomBasic-v1")
for env_id in names:
    try:
        make_one(EnvConfig(id=env_id))
    except MissingPackageError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    extras = {"Hopper-v5": "mujoco", "LunarLander-v3": "box2d", "BipedalWalker-v3": "box2d"}
    extras |= {"MinAtar/Asterix-v0": "minatar", "MiniGrid-Empty-5x5-v0": "minigrid", "VizdoomBasic-v1": "vizdoom"}
    assert done.stdout.splitlines() == [
        f"Environment '{env_id}' needs an optional package. Install it with: pip install \"gymnast[{extra}]\""
        for env_id, extra in extras.items()
    ]
