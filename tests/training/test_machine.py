"""What a run uses of the machine: device, precision and threads, why, and that the choice is the run's from then on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from runs_alike import Watcher, assert_same_end, differences, resume, run, small

from gymnast.config.load import Resolved, validate
from gymnast.config.schema import RunConfig
from gymnast.envs.choose import cores
from gymnast.errors import UsageError
from gymnast.training import machine
from gymnast.training.build import build
from gymnast.training.machine import choose_device, choose_precision, choose_threads, prepare_gpu

CPU, GPU = torch.device("cpu"), torch.device("cuda")
PICTURES = {"id": "Pictures-v0", "kwargs": {"size": [12, 14]}, "wrappers": ["pixels"], "vectorization": "inprocess"}
NETWORK = {"cnn": [{"channels": 4, "kernel": 4, "stride": 2}], "cnn_features": 16, "hidden": []}
FAST = "this CPU supports it, about 1.7 times faster than float32"


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with one, as far as torch says."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda *_: "Some GPU")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))


# ---- device ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_gpu")
def test_devices_of_a_machine_without_a_gpu(tmp_path: Path) -> None:
    for images in (False, True):
        assert choose_device("auto", images=images) == (CPU, "no GPU found")
        assert choose_device("cpu", images=images) == (CPU, "as configured")
    with pytest.raises(UsageError, match=r"train\.device is cuda, but torch finds no GPU: use auto or cpu, or install"):
        choose_device("cuda", images=True)
    with pytest.raises(UsageError, match="finds no GPU"):
        run(small("ppo", {"id": "CartPole-v1"}, train={"device": "cuda"}), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()  # nothing is left behind


@pytest.mark.parametrize("name", ["gpu0", "mps", "meta", "cud", ""])
def test_unknown_devices_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"Unknown device '{name}': use auto, cpu or cuda"):
        choose_device(name)


@pytest.mark.usefixtures("one_gpu")
def test_devices_of_a_machine_with_a_gpu() -> None:
    assert choose_device("auto", images=True) == (GPU, "Some GPU: image networks train faster there")
    device, why = choose_device("auto")
    assert device == CPU and "networks without images are faster on the CPU" in why
    assert choose_device("cuda") == (GPU, "as configured")
    assert choose_device("cuda:0")[0] == torch.device("cuda:0")
    with pytest.raises(UsageError, match=r"train\.device is cuda:3, but torch finds 1 GPU"):
        choose_device("cuda:3")


# ---- precision and threads -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["float32", "tf32", "bf16"])
def test_a_precision_that_is_given_stays(name: str) -> None:
    for device in (CPU, GPU):
        for images in (False, True):
            assert choose_precision(name, device, images=images) == (name, "as configured")


def test_the_precision_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_precision("auto", CPU, images=False) == ("float32", "no CNN")
    monkeypatch.setattr(machine, "_cpu_has_bf16", lambda: True)
    assert choose_precision("auto", CPU, images=True) == ("bf16", FAST)
    monkeypatch.setattr(machine, "_cpu_has_bf16", lambda: False)
    assert choose_precision("auto", CPU, images=True) == ("float32", "this CPU has no bf16")


@pytest.mark.usefixtures("one_gpu")
def test_the_precision_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_precision("auto", GPU, images=False) == ("float32", "no CNN")
    assert choose_precision("auto", GPU, images=True)[0] == "bf16"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (7, 5))
    assert choose_precision("auto", GPU, images=True) == ("float32", "this GPU has no bf16")


def test_threads() -> None:
    auto = RunConfig.model_validate({"env": {"id": "CartPole-v1"}, "algo": {"id": "ppo"}, "train": {"env_steps": 1}})
    three = auto.model_copy(update={"train": auto.train.model_copy(update={"threads": 3})})
    assert choose_threads(auto, CPU, images=False)[0] == choose_threads(auto, GPU, images=True)[0] == 1
    assert choose_threads(auto, CPU, images=True) == (cores(), "a CNN on the CPU takes all cores")
    asked = {choose_threads(three, device, images=images) for device in (CPU, GPU) for images in (False, True)}
    assert asked == {(3, "as configured")}


@pytest.fixture
def kernels() -> Iterator[None]:
    """Settings of torch that outlast a run are put back."""
    backends = torch.backends
    before = backends.cudnn.allow_tf32, backends.cuda.matmul.allow_tf32, backends.cudnn.benchmark
    repeatable = torch.are_deterministic_algorithms_enabled()
    yield
    backends.cudnn.allow_tf32, backends.cuda.matmul.allow_tf32, backends.cudnn.benchmark = before
    torch.use_deterministic_algorithms(repeatable)


@pytest.mark.usefixtures("kernels")
def test_float32_is_never_less_on_a_gpu() -> None:
    """Also behind a run of the same process that asked for tf32."""
    for precision, rough in (("float32", False), ("tf32", True), ("float32", False), ("bf16", False)):
        prepare_gpu(precision, deterministic=False)
        assert torch.backends.cudnn.allow_tf32 == torch.backends.cuda.matmul.allow_tf32 == rough
    assert torch.backends.cudnn.benchmark


@pytest.mark.usefixtures("kernels")
def test_deterministic_kernels_do_not_outlast_their_run() -> None:
    for deterministic in (False, True, False):
        prepare_gpu("float32", deterministic=deterministic)
        assert torch.are_deterministic_algorithms_enabled() == deterministic
        assert torch.backends.cudnn.benchmark == (not deterministic)


# ---- runs ------------------------------------------------------------------------------------------------------------


def pictures(precision: str, **train: Any) -> Resolved:
    """A few iterations with a small CNN."""
    return small("ppo", PICTURES, policy={**NETWORK, "precision": precision}, train={"threads": 1, **train})


@pytest.mark.parametrize("has_bf16", [False, True])
def test_auto_is_decided_and_saved_with_the_run(
    has_bf16: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_cpu_has_bf16", lambda: has_bf16)
    expected = "bf16" if has_bf16 else "float32"
    watcher = Watcher(stop_after=2)
    stopped = run(pictures("auto"), tmp_path, watcher)
    assert stopped.interrupted and watcher.trainer is not None
    assert watcher.trainer.policy.encoder.nets[0].dtype == getattr(torch, "bfloat16" if has_bf16 else "float32")
    assert watcher.trainer.reasons["policy.precision"] == (FAST if has_bf16 else "this CPU has no bf16")
    saved = stopped.run.config()
    assert saved["policy"]["precision"] == expected
    # A machine of the other kind goes on as it began.
    monkeypatch.setattr(machine, "_cpu_has_bf16", lambda: not has_bf16)
    again = Watcher()
    resume(Resolved(validate(saved, {})), stopped.run, again)
    assert again.trainer is not None
    assert again.trainer.config.policy.precision == stopped.run.config()["policy"]["precision"] == expected


def test_networks_without_images_are_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_cpu_has_bf16", lambda: True)
    done = run(small("ppo", {"id": "CartPole-v1"}, env_steps=64), tmp_path)
    assert done.run.config()["policy"]["precision"] == "float32"


def test_a_session_uses_the_threads_it_is_given() -> None:
    before = torch.get_num_threads()
    try:
        for threads, expected in (("auto", cores()), (1, 1)):
            trainer = build(pictures("float32", threads=threads).config)
            trainer.envs.close()
            assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_an_image_run_resumes_exactly(precision: str, tmp_path: Path) -> None:
    resolved = pictures(precision)
    straight, before, after = Watcher(), Watcher(stop_after=3), Watcher()
    whole = run(resolved, tmp_path, straight)
    stopped = run(resolved, tmp_path, before)
    assert stopped.interrupted
    finished = resume(resolved, stopped.run, after)
    assert not differences(straight.actions, before.actions + after.actions)
    assert_same_end(whole.run, finished.run)
    assert straight.trainer is not None
    weights = straight.trainer.flat.values
    assert weights.dtype == torch.float32
    rounded = weights.to(torch.bfloat16).float()
    assert not torch.equal(weights, rounded)  # what is learned keeps all its digits


def test_both_precisions_are_runs_of_their_own(tmp_path: Path) -> None:
    """So that the test above compares something: bf16 is another arithmetic."""
    ends = []
    for precision in ("float32", "bf16"):
        watcher = Watcher()
        run(pictures(precision), tmp_path, watcher)
        assert watcher.trainer is not None
        ends.append(watcher.trainer.flat.values.clone())
    assert not torch.equal(*ends)
    assert float((ends[0] - ends[1]).abs().mean()) < 0.02
