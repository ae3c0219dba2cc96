"""The closer look: when it happens, what trackers get of it, and that training is the same without it.

What its numbers mean is computed again in test_metric_meanings.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from runs_alike import N_ENVS, N_STEPS, PER_ITERATION, differences, end_of, run, small

from gymnast.config.schema import PolicyConfig
from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.metrics.sinks.tracked import FOLDER, HISTOGRAMS
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.units import dead, rectified
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.diagnostics.looks import spread

CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}


def looked_at(every: Any, algorithm: str = "ppo", **log: Any) -> Any:
    """Six iterations of 64 env steps."""
    return small(
        algorithm,
        CARTPOLE,
        log={"window": 5, "diagnostics_every": every, **log},
        policy={"hidden": [16], "activation": "relu"},
    )


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "reinforce"])
def test_training_is_the_same_to_the_bit_without_it(algorithm: str, tmp_path: Path) -> None:
    """Weights, optimizer, generators, counters, and all other metrics."""
    ends = [end_of(run(looked_at(every, algorithm), tmp_path).run) for every in (1, None)]
    for end in ends:
        end["rows"] = [
            {name: row[name] for name in ("env_steps", "train/loss", "train/grad_norm")} for row in end["rows"]
        ]
        end["metrics"] = None
    assert differences(*ends) == []


def test_it_happens_as_often_as_is_said(tmp_path: Path) -> None:
    """In the first iteration, and in those that pass a multiple of the cadence."""
    found = {}
    for every in (1, 2 * PER_ITERATION, 100, None):
        rows = MetricRows(run(looked_at(every), tmp_path).run.metrics_path)
        found[every] = [row["env_steps"] // PER_ITERATION for row in rows if row["train/weight_norm"] is not None]
    assert found == {1: [1, 2, 3, 4, 5, 6], 2 * PER_ITERATION: [1, 2, 4, 6], 100: [1, 2, 4, 5], None: []}


def test_auto_is_rarer_where_epochs_are_fewer() -> None:
    """The work between two looks is what counts."""
    from gymnast.training.diagnostics.looks import PASSES, cadence

    assert cadence(looked_at("auto", "ppo").config) == PASSES // 2  # two epochs
    assert cadence(looked_at("auto", "a2c").config) == PASSES


def test_trackers_get_histograms_of_the_same_iterations(tmp_path: Path) -> None:
    """Counts are of all there is; steps are those of rows with a look."""
    made = run(looked_at(2 * PER_ITERATION, sinks=["tensorboard"]), tmp_path).run
    lines = [json.loads(line) for line in (made.folder / FOLDER / HISTOGRAMS).read_text().splitlines()]
    assert [line["env_steps"] // PER_ITERATION for line in lines] == [1, 2, 4, 6]
    rows = {row["env_steps"]: row for row in MetricRows(made.metrics_path)}
    for line in lines:
        found = line["histograms"]
        assert {name.split("/")[1] for name in found} == {
            *("gradients", "weights", "actions", "outputs", "values", "advantages", "targets"),
        }
        assert sum(found["histograms/actions"]["counts"]) == N_ENVS * N_STEPS
        shares = np.array(found["histograms/actions"]["counts"]) / (N_ENVS * N_STEPS)
        row = rows[line["env_steps"]]
        assert shares == pytest.approx([row["rollout/action_share/0"], row["rollout/action_share/1"]])
        assert sum(found["histograms/values"]["counts"]) == N_ENVS * N_STEPS


def test_nothing_is_kept_for_trackers_that_are_not_there(tmp_path: Path) -> None:
    """No folder of trackers at all."""
    assert not (run(looked_at(1), tmp_path).run.folder / FOLDER).exists()


def test_a_spread_counts_what_is_finite() -> None:
    """And is a histogram also where there is nothing, or one value only."""
    counted = spread(np.array([0.0, 1.0, 1.0, np.nan, np.inf]))
    assert sum(counted.counts) == 3 and counted.counts[-1] == 2 and counted.edges[0] == 0.0
    assert sum(spread(np.array([np.nan])).counts) == 0
    assert sum(spread(np.full(7, 3.0)).counts) == 7


@pytest.mark.parametrize("shared", [False, True])
def test_dead_units_are_found_by_layer(shared: bool) -> None:
    """Two units that cannot be anything but zero, in a layer whose others can."""
    config = PolicyConfig(hidden=[12, 8], activation="relu", shared_trunk=shared)
    policy = ActorCritic(config, spaces.Box(-1, 1, (3,)), spaces.Discrete(2))
    chain = policy.trunk if shared else policy.actor
    assert chain is not None
    with torch.no_grad():
        chain.layers[1].bias[2:4] = -1e6
    layers = rectified(policy, torch.rand((200, 3), generator=torch.Generator().manual_seed(1)) * 2 - 1)
    found = {name: dead(layer).nonzero().flatten().tolist() for name, layer in layers.items()}
    first = "trunk" if shared else "policy"
    assert {2, 3} <= set(found[f"{first}.1"]) and not {2, 3} & set(found[f"{first}.0"])
    assert set(found) == (
        {"trunk.0", "trunk.1"} if shared else {f"{part}.{i}" for part in ("policy", "value") for i in (0, 1)}
    )


@pytest.mark.parametrize("cnn", ["nature", "impala", [{"channels": 4, "kernel": 3, "stride": 2}]])
def test_dead_channels_of_convolutions(cnn: Any) -> None:
    """What the layers give is what the network computes with; a channel is dead where it is zero everywhere."""
    config = PolicyConfig(hidden=[], cnn=cnn, cnn_features=16, precision="float32")
    policy = ActorCritic(config, spaces.Box(0, 255, (2, 40, 40), np.uint8), spaces.Discrete(3))
    images = torch.randint(0, 256, (5, 2, 40, 40), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    layers = rectified(policy, images)
    last = layers[f"encoder.{len(layers) - 1}"]
    assert torch.allclose(last, policy.encoder(images), atol=1e-5)
    if cnn == "impala":
        return
    before = dead(layers["encoder.0"])
    alive = int((~before).nonzero()[0])
    with torch.no_grad():
        policy.encoder.nets[0].body[0].bias[alive] = -1e6
    after = dead(rectified(policy, images)["encoder.0"])
    assert (before != after).nonzero().flatten().tolist() == [alive]


def test_norms_of_parts_make_the_whole() -> None:
    """Also where the gradient was clipped to a hundredth of its length."""
    resolved = small("ppo", CARTPOLE, log={"diagnostics_every": 1}, algo={"max_grad_norm": 0.01})
    trainer = build(resolved.config)
    try:
        trainer.start()
        done = trainer.learn_once(StageTimer())
        from gymnast.training.diagnostics.looks import look

        row = look(trainer, done)
    finally:
        trainer.close()
    for name, whole in (
        ("grad_norm", done.result.last_norm),
        ("weight_norm", row["train/weight_norm"]),
        ("update_norm", row["train/update_norm"]),
    ):
        parts = [value for key, value in row.items() if key.startswith(f"train/{name}/") and value is not None]
        assert len(parts) == 2 and np.sqrt(np.square(parts).sum()) == pytest.approx(whole, rel=1e-4), name
    assert done.result.statistics["train/grad_clip_fraction"] == 1.0
