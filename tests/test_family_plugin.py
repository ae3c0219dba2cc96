"""A family of envs from a package: the example as a user would install it, and records that are wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from installed import Install, pip_install
from launch import PATIENCE, environment, gymnast

from gymnast import plugins
from gymnast.config.schema import EnvConfig
from gymnast.envs.choose import choose_vectorization
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_envs
from gymnast.envs.registry import env_spec, family_of_config

EXAMPLE = Path(__file__).parents[1] / "examples" / "env-family"
SAILOR = "Wind/Sailor-v0"

STOPPED_AND_RESUMED = """
import sys
from pathlib import Path
import gymnast
from gymnast.config.load import from_saved
from gymnast.runs import checkpoint
from gymnast.training.train import Resume, resume_point, train

def weights(run):
    saved = checkpoint.load(run.folder / "checkpoints" / checkpoint.read_pointer(run.folder, "last"))
    return {name: tensor.tolist() for name, tensor in saved.policy.items()}

def trained(way, steps, folder):
    settings = {"env__vectorization": way, "env__n_envs": 2, "algo__n_steps": 40, "train__env_steps": steps}
    settings |= {"eval__episodes": 2, "eval__every": 10**6, "train__stop_when_solved": False}
    return gymnast.train("Wind/Sailor-v0:ppo", seed=3, runs_dir=Path(folder), **settings).run

found = []
for way in ("inprocess", "native"):
    whole = weights(trained(way, 480, f"{way}-whole"))
    half = trained(way, 240, f"{way}-half")  # in the middle of an episode
    config = half.config()
    config["train"]["env_steps"] = 480
    train(from_saved(config), half.root, resume=Resume(half, resume_point(half)[0]))
    print(way, weights(half) == whole)
    found.append(whole)
print("native is inprocess:", found[0] == found[1])
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example."""
    return pip_install(EXAMPLE, tmp_path_factory.mktemp("family"))


def path_with(site: Path) -> str:
    """What is installed there, next to what the tests themselves import."""
    return os.pathsep.join([str(site), environment()["PYTHONPATH"]])


def test_it_trains_stops_and_resumes_exactly(site: Path, tmp_path: Path) -> None:
    """With its own saved state and its own vector form, in one process; both play the same."""
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_AND_RESUMED],
        cwd=tmp_path,
        env=environment(PYTHONPATH=path_with(site)),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == ["inprocess True", "native True", "native is inprocess: True"]


def test_the_doctor_and_the_list_show_it(site: Path, tmp_path: Path) -> None:
    """A line like those of our own families, and the entry point among the plug-ins."""
    found = json.loads(gymnast("doctor", "--json", cwd=tmp_path, PYTHONPATH=path_with(site)).stdout)
    checks = {check["what"]: check for check in found}
    assert checks["Wind"]["ok"] and checks["Wind"]["detail"] == "gymnast-env-family 0.1.0"
    assert checks["plug-in: env family Wind/"]["ok"]
    listed = gymnast("env", "list", "Wind", "--all", "--json", cwd=tmp_path, PYTHONPATH=path_with(site))
    assert {(row["id"], row["family"]) for row in json.loads(listed.stdout)} == {
        (SAILOR, "wind"),
        ("Wind/Storm-v0", "wind"),
    }


# --- in this process --------------------------------------------------------------------------------------------------


@pytest.fixture
def wind(install: Install, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example's entry point, with its sources."""
    monkeypatch.syspath_prepend(EXAMPLE / "src")
    install("installed", "from gymnast_wind import WIND", families="Wind/ = gymnast_wind:WIND")
    yield
    for name in [name for name in sys.modules if name.startswith("gymnast_wind")]:
        del sys.modules[name]  # it registers its envs when it is imported, and the next test has none registered


def test_the_record_is_asked(wind: None) -> None:
    """Without it the envs would be restored by repeating actions, which for them is not exact."""
    config = EnvConfig(id=SAILOR)
    family = family_of_config(config)
    assert family is not None and family.title == "Wind"
    assert choose_vectorization(config) == ("native", "this env has a native vector form")
    with closing(make_envs(config.model_copy(update={"vectorization": "inprocess"}), 2)) as envs:
        assert isinstance(envs, InProcessVector) and envs.exact_resume == "snapshot"


def test_the_vector_form_plays_what_single_envs_play(wind: None) -> None:
    """Through ends by the time limit, in both envs of the family."""
    for env_id in (SAILOR, "Wind/Storm-v0"):
        config = EnvConfig(id=env_id, time_limit=7)
        single = make_envs(config.model_copy(update={"vectorization": "inprocess"}), 3)
        native = make_envs(config.model_copy(update={"vectorization": "native"}), 3)
        rows = [envs.new_row() for envs in (single, native)]
        with closing(single), closing(native):
            for envs, row in zip((single, native), rows, strict=True):
                envs.reset([4, 5, 6], row)
            actions = np.random.default_rng(0).integers(0, 2, (30, 3))
            for action in actions:
                ended = [envs.step(action, row) for envs, row in zip((single, native), rows, strict=True)]
                assert rows[0].obs.tobytes() == rows[1].obs.tobytes()
                assert rows[0].reward.tobytes() == rows[1].reward.tobytes()
                assert [(one.index, one.length, one.ret) for one in ended[0]] == [
                    (one.index, one.length, one.ret) for one in ended[1]
                ]


def test_nothing_is_looked_up_for_ids_that_are_known(install: Install) -> None:
    """A broken package costs those who do not use its envs nothing, and its users one sentence."""
    install("broken", "import nothing_of_this_name", families="Broken/ = broken:FAMILY")
    assert family_of_config(EnvConfig(id="CartPole-v1")) is not None and "broken" not in sys.modules
    with pytest.raises(plugins.PluginError, match="plug-in 'Broken/' .env family. of broken 1.0 cannot be imported"):
        env_spec("Broken/Env-v0")


def test_a_record_of_another_kind(install: Install) -> None:
    install("odd", "FAMILY = {'name': 'odd'}", families="Odd/ = odd:FAMILY")
    with pytest.raises(plugins.PluginError, match="of odd 1.0 is no `Family` but a dict"):
        env_spec("Odd/Env-v0")


def test_ours_stays(install: Install) -> None:
    """A package that claims the ids of one of our families does not get them."""
    install(
        "taken",
        "from gymnast.envs.families.family import Family\nFAMILY = Family(name='taken')",
        families="MinAtar/ = taken:FAMILY\nPole = taken:FAMILY",
    )
    family = family_of_config(EnvConfig(id="MinAtar/Breakout-v1"))
    assert family is not None and family.name == "minatar"
    gym.register("Pole-v0", "gymnasium.envs.classic_control.cartpole:CartPoleEnv")
    family = family_of_config(EnvConfig(id="Pole-v0"))
    assert family is not None and family.name == "classic"  # by where the class is
