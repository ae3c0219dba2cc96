"""The exact suite on a GPU, under `train.deterministic` (RUN-8), and its captured graphs beside plain calls; it needs one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from runs_alike import PER_ITERATION, Watcher, assert_same_end, differences, resume, run, small

from gymnast.algorithms.base import Coefficients, Loss, Outputs
from gymnast.errors import NonFiniteError
from gymnast.rollout.batch import Batch
from gymnast.rollout.device import DeviceRollout
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.captured import can_capture
from gymnast.training.on_policy import OnPolicyTrainer

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")

ON_GPU = {"train": {"device": "cuda", "deterministic": True}}
CARTPOLE = {"id": "CartPole-v1", "time_limit": 40}
PENDULUM = {"id": "Pendulum-v1", "time_limit": 30}
POLICIES: dict[str, dict[str, Any]] = {
    "plain": {"hidden": [64, 64], "normalize_obs": True},
    "shared trunk": {"hidden": [64], "shared_trunk": True},
    "layer norm": {"hidden": [64], "layer_norm": True},
    "dropout": {"hidden": [64], "dropout": 0.3},
}


def on_gpu(algorithm: str, env: dict[str, Any], policy: str, env_steps: int) -> Any:
    """A small run on the GPU."""
    train = {"env_steps": env_steps, "stop_when_solved": False, "checkpoint_every": 10**9, **ON_GPU["train"]}
    return small(algorithm, env, train=train, policy=POLICIES[policy])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("env", [CARTPOLE, PENDULUM], ids=["CartPole", "Pendulum"])
@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "reinforce"])
def test_stop_and_resume_equals_the_whole_run(algorithm: str, env: dict[str, Any], policy: str, tmp_path: Path) -> None:
    stop_after, env_steps = (2, 15 * PER_ITERATION) if algorithm == "reinforce" else (3, 6 * PER_ITERATION)
    resolved = on_gpu(algorithm, env, policy, env_steps)
    straight, before, after = Watcher(), Watcher(stop_after=stop_after), Watcher()
    whole = run(resolved, tmp_path, straight)
    stopped = run(resolved, tmp_path, before)
    assert stopped.interrupted
    finished = resume(resolved, stopped.run, after)
    assert not differences([a.cpu() for a in straight.actions], [a.cpu() for a in before.actions + after.actions])
    assert_same_end(whole.run, finished.run)


# ---- images ----------------------------------------------------------------------------------------------------------

PONG = {
    "id": "ALE/Pong-v5",
    "atari": {"size": [36, 44], "stack": 2, "frame_cap": 200},
    "wrappers": ["reward_clip"],
    "vectorization": "workers",
    "n_workers": 2,
}
PICTURES = {"id": "Pictures-v0", "kwargs": {"size": [12, 16]}, "wrappers": ["pixels"], "vectorization": "inprocess"}
LAYERS = [{"channels": 8, "kernel": 4, "stride": 4}, {"channels": 8, "kernel": 3}]
NETWORKS: dict[str, dict[str, Any]] = {
    "nature": {"cnn": "nature", "cnn_features": 32, "hidden": []},
    "impala": {"cnn": "impala", "cnn_features": 32, "hidden": [16]},
}


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
@pytest.mark.parametrize("network", NETWORKS)
def test_games_from_pixels_resume_exactly(network: str, precision: str, tmp_path: Path) -> None:
    """Games in workers, stepped lane by lane where cores are many; the rollout stays on the GPU."""
    pytest.importorskip("ale_py", reason="ale-py is not installed")
    resolved = small("ppo", PONG, train=ON_GPU["train"], policy={**NETWORKS[network], "precision": precision})
    straight, before, after = Watcher(), Watcher(stop_after=3), Watcher()
    whole = run(resolved, tmp_path, straight)
    assert straight.trainer is not None and isinstance(straight.trainer.rollout, DeviceRollout)
    assert straight.trainer.rollout.obs.is_cuda and straight.trainer.rollout.obs.dtype == torch.uint8
    stopped = run(resolved, tmp_path, before)
    assert stopped.interrupted
    finished = resume(resolved, stopped.run, after)
    assert not differences([a.cpu() for a in straight.actions], [a.cpu() for a in before.actions + after.actions])
    assert_same_end(whole.run, finished.run)


@pytest.mark.parametrize("overlap", ["envs", "learner"])
def test_lanes_that_do_not_wait_for_each_other_resume_too(overlap: str, tmp_path: Path) -> None:
    """With lanes of envs alone the run is the same; with learning beside them it goes on from the last whole boundary."""
    pytest.importorskip("ale_py", reason="ale-py is not installed")
    train = {**ON_GPU["train"], "overlap": overlap}
    resolved = small("ppo", PONG, train=train, policy={**NETWORKS["nature"], "precision": "float32"})
    stopped = run(resolved, tmp_path, Watcher(stop_after=3))
    assert stopped.interrupted
    finished = resume(resolved, stopped.run)
    assert finished.run.status().state == "finished"
    if overlap == "envs":
        assert_same_end(run(resolved, tmp_path).run, finished.run)


# ---- captured graphs -------------------------------------------------------------------------------------------------


class Looks:
    """Looks on, for which every minibatch is computed call by call."""

    def batch(self, batch: Batch, c: Coefficients) -> None:
        """Nothing."""

    def gradients(self, number: int, minibatch: Batch, outputs: Outputs, loss: Loss) -> None:
        """Nothing."""

    def stepped(self, number: int) -> None:
        """Nothing."""

    def finished(self, iteration: int, env_steps: int) -> None:
        """Nothing."""


CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "ppo": ("ppo", CARTPOLE, {"hidden": [32], "normalize_obs": True}, {"max_grad_norm": 0.3}),
    "ppo, shared": ("ppo", PENDULUM, {"hidden": [32], "shared_trunk": True}, {"max_grad_norm": 100.0}),
    "ppo, early stop": ("ppo", CARTPOLE, {"hidden": [32]}, {"target_kl": 1e-5, "n_epochs": 5}),
    "ppo, uneven minibatches": ("ppo", CARTPOLE, {"hidden": [32]}, {"batch_size": 24}),
    "a2c": ("a2c", CARTPOLE, {"hidden": [32]}, {}),
    "images": ("ppo", PICTURES, {"cnn": LAYERS, "cnn_features": 32, "hidden": [], "precision": "float32"}, {}),
}


def on_device(case: str) -> OnPolicyTrainer:
    """A trainer on the GPU, before its first iteration."""
    algorithm, env, policy, algo = CASES[case]
    config = small(algorithm, env, train=ON_GPU["train"], policy=policy).config
    algo_config = type(config.algo).model_validate({**config.algo.model_dump(), **algo})
    trainer = build(config.model_copy(update={"algo": algo_config}))
    trainer.start()
    return trainer


@pytest.mark.parametrize("case", CASES)
def test_captured_updates_are_plain_updates(case: str) -> None:
    """Over several iterations: the same weights but for the last digits, of the same samples in the same order."""
    captured, plain = on_device(case), on_device(case)
    plain.observer = Looks()
    try:
        for number in range(3):
            first = captured.learn_once(StageTimer())
            second = plain.learn_once(StageTimer())
            assert (first.result.updates, first.result.epochs) == (second.result.updates, second.result.epochs)
            assert first.result.stopped_by_kl == second.result.stopped_by_kl == (case == "ppo, early stop")
            assert first.result.statistics == pytest.approx(second.result.statistics, rel=1e-3, abs=1e-4)
            torch.testing.assert_close(captured.flat.values, plain.flat.values, rtol=1e-4, atol=1e-5)
            # What differs in the last digits would act differently in the end: both go on from the same weights.
            with torch.no_grad():
                plain.flat.values.copy_(captured.flat.values)
            plain.optimizer.load_state({name: t.clone() for name, t in captured.optimizer.state().items()})
            assert torch.equal(captured.rollout["action"], plain.rollout["action"]), number
            captured.go_on()
            plain.go_on()
        assert captured.updater._captured and not plain.updater._captured
    finally:
        captured.close()
        plain.close()


@pytest.mark.parametrize("case", CASES)
def test_a_closer_look_at_captured_updates_finds_what_one_at_plain_updates_finds(case: str) -> None:
    """Norms, dead units, outputs and histograms are read from what the update left behind, however it was launched."""
    captured, plain = on_device(case), on_device(case)
    plain.observer = Looks()
    try:
        rows = []
        for trainer in (captured, plain):
            trainer.wants_histograms = True
            rows.append(trainer.iterate(StageTimer(), drain=True))  # the first iteration is always looked at
        first, second = ({name: value for name, value in row.items() if value is not None} for row in rows)
        assert first.keys() == second.keys()
        assert {"train/weight_norm", "train/update_norm", "train/output_std"} <= first.keys()
        assert first == pytest.approx(second, rel=1e-3, abs=1e-4)
        counts = [
            {name: sum(one.counts) for name, one in trainer.histograms().items()} for trainer in (captured, plain)
        ]
        assert counts[0] == counts[1] and "histograms/actions" in counts[0]
        assert captured.updater._captured and not plain.updater._captured
    finally:
        captured.close()
        plain.close()


def test_a_captured_update_with_a_bad_gradient_leaves_the_weights_alone() -> None:
    trainer = on_device("ppo")
    try:
        iteration = trainer.learn_once(StageTimer())
        batch = iteration.batch.to(trainer.device)
        assert can_capture(trainer.learner, batch)
        weights = trainer.flat.values.clone()
        moments = {name: tensor.clone() for name, tensor in trainer.optimizer.state().items()}
        batch["advantage"][5] = float("nan")
        with pytest.raises(NonFiniteError, match="weights are unchanged"):
            trainer.updater.launch(batch, iteration.coefficients).result()
        assert torch.equal(trainer.flat.values, weights)
        assert all(torch.equal(tensor, moments[name]) for name, tensor in trainer.optimizer.state().items())
    finally:
        trainer.close()


def test_a_gpu_that_is_not_there_is_refused() -> None:
    from gymnast.errors import UsageError

    with pytest.raises(UsageError, match=r"train\.device is cuda:99, but torch finds"):
        build(small("ppo", CARTPOLE, train={"device": "cuda:99"}).config)
