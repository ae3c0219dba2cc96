"""A plan as a config section: what it means, what is refused, and by which words."""

from __future__ import annotations

import pytest

from gymnast.config.load import resolve
from gymnast.config.schema import RunConfig
from gymnast.config.task_words import summary_of
from gymnast.config.tasks import task_envs, task_thresholds
from gymnast.errors import GymnastError
from gymnast.runs.trust import code_in

LANDERS = (
    "plan={by: stage, tasks: {calm: {env_steps: 1000}, "
    "windy: {env: {kwargs: {enable_wind: true, wind_power: 10}}, solved_at: 150}, other: {env: {id: CartPole-v1}}}}"
)


def config(*words: str) -> RunConfig:
    return resolve("LunarLander-v3:ppo", words).config


def test_a_task_is_the_env_section_with_changes() -> None:
    """Mappings merge, so a task keeps what it does not name."""
    found = config(LANDERS, "env.kwargs.gravity=-9")
    envs = task_envs(found)
    assert envs["calm"].kwargs == {"gravity": -9}
    assert envs["windy"].kwargs == {"gravity": -9, "enable_wind": True, "wind_power": 10}
    assert envs["windy"].time_limit == found.env.time_limit == 500


def test_thresholds_follow_the_env() -> None:
    """The spec's threshold is for its own env id."""
    assert task_thresholds(config(LANDERS)) == {"calm": 200, "windy": 150, "other": None}


def test_keys_of_a_task_change_from_the_command_line() -> None:
    found = config(
        LANDERS, "plan.tasks.windy.solved_at=120", "plan.start=windy", "plan.tasks.windy.env.kwargs.wind_power=3"
    )
    assert found.plan is not None
    assert found.plan.tasks["windy"].solved_at == 120
    assert found.plan.stages == ["windy", "other"]
    assert task_envs(found)["windy"].kwargs == {"enable_wind": True, "wind_power": 3}


def test_the_summary_says_when_stages_end() -> None:
    ((name, words),) = summary_of(config(LANDERS))
    assert name == "stages"
    assert words == "calm (until 200 or 1,000 steps) → windy (until 150) → other (to the end of the budget)"


def test_code_that_a_task_names_needs_trust() -> None:
    found = config("plan={by: slot, tasks: {a: {env: {module: somebodys.envs}}, b: {env: {id: 'their_module:Env'}}}}")
    assert [code.key for code in code_in(found.model_dump(mode="json"))] == [
        "plan.tasks.a.env.module",
        "plan.tasks.b.env.id",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("{by: slot, tasks: {a: {}}}", "'plan': a plan has at least 2 tasks (got 1)."),
        (
            "{by: slots, tasks: {a: {}, b: {}}}",
            "'plan.by': input should be 'slot', 'episode' or 'stage' (got 'slots').",
        ),
        ("{by: slot, tasks: {a/b: {}, b: {}}}", "letters, digits, - and _ only, not 'a/b'"),
        ("{by: slot, tasks: {a: {solved: 3}, b: {}}}", "unknown key 'plan.tasks.a.solved'. Did you mean 'solved_at'?"),
        (
            "{by: slot, tasks: {a: {env: {kwagrs: {}}}, b: {}}}",
            "unknown key 'plan.tasks.a.env.kwagrs'. Did you mean 'kwargs'?",
        ),
        ("{by: slot, tasks: {a: {env: {n_envs: 3}}, b: {}}}", "belongs to the whole run: set env.n_envs."),
        (
            "{by: slot, tasks: {a: {env: {time_limit: x}}, b: {}}}",
            "'plan.tasks.a.env.time_limit': input should be a valid integer",
        ),
        ("{by: slot, tasks: {a: {env_steps: 5}, b: {}}}", "task 'a' has env_steps, which are for stages"),
        (
            "{by: stage, tasks: {a: {weight: 5}, b: {}}}",
            "task 'a' has a weight, which is for tasks by slot or by episode",
        ),
        (
            "{by: stage, start: clam, tasks: {calm: {}, b: {}}}",
            "start names no stage (got 'clam'). Did you mean 'calm'?",
        ),
        ("{by: slot, start: a, tasks: {a: {}, b: {}}}", "start is for stages; these are tasks by slot"),
        ("{by: stage, tasks: {a: {env: {id: CartPole-v1}}, b: {}}}", "stage 'plan.tasks.a' would never end"),
        ("{by: stage, tasks: {a: {}, b: {}}} eval.mode=worker", "leave eval.mode at auto"),
        ("{by: slot, tasks: {a: {}, b: {}}} eval.env=[{},{name: other}]", "one score per task already"),
        ("{by: slot, tasks: {a: {}, b: {}}} env.vectorization=envpool", "tasks cannot be mixed by EnvPool"),
    ],
)
def test_what_is_refused(words: str, sentence: str) -> None:
    """By one sentence each, with the key and what to do."""
    plan, *others = words.replace("} eval", "}|eval").replace("} env.", "}|env.").split("|")
    with pytest.raises(GymnastError) as caught:
        config(f"plan={plan}", *others)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
