"""Every shipped plan can be trained: its tasks show and take the same."""

from __future__ import annotations

import pytest

from gymnast.config.files import env_files, known_env_ids
from gymnast.config.load import resolve
from gymnast.config.tasks import task_envs
from gymnast.envs.tasks import check_spaces, steppable


def plans() -> list[str]:
    """All shipped configs with a plan."""
    found = []
    for env_id in known_env_ids():
        for file in env_files(env_id):
            found += [f"{env_id}:{name}" for name, body in file.variants.items() if "plan" in (body or {})]
    return sorted(set(found))


def test_there_are_some() -> None:
    assert plans() == ["FrozenLake-v1:curriculum_ppo", "VizdoomDeathmatch-v1:curriculum_ppo"]


def test_the_nine_scenarios_of_doom_come_in_their_order() -> None:
    plan = resolve("VizdoomDeathmatch-v1:curriculum_ppo").config.plan
    assert plan is not None
    assert " ".join(plan.stages) == (
        "MyWayHome HealthGathering DefendTheLine DefendTheCenter Basic PredictPosition TakeCover DeadlyCorridor Deathmatch"
    )


@pytest.mark.parametrize(
    "reference",
    ["FrozenLake-v1:curriculum_ppo", pytest.param("VizdoomDeathmatch-v1:curriculum_ppo", marks=pytest.mark.full)],
)
def test_all_tasks_show_and_take_the_same(reference: str) -> None:
    if reference.startswith("Vizdoom"):
        pytest.importorskip("vizdoom")
    config = resolve(reference).config
    tasks = {name: steppable(env) for name, env in task_envs(config).items()}
    check_spaces({"the run": config.env, **tasks})
