"""What of the machine a run uses (CFG-5): device, precision, threads and how much runs at the same time, each with its reason."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading

import torch

from gymnast.config.schema import RunConfig
from gymnast.envs.choose import cores
from gymnast.envs.registry import rules_of
from gymnast.errors import UsageError
from gymnast.policies.base import Policy


def choose_device(name: str, *, images: bool = False) -> tuple[torch.device, str]:
    """The device and the reason; small networks are faster on the CPU even if there is a GPU."""
    if name == "auto":
        if not torch.cuda.is_available():
            return torch.device("cpu"), "no GPU found"
        if images:
            return torch.device("cuda"), f"{torch.cuda.get_device_name()}: image networks train faster there"
        return torch.device("cpu"), "a GPU is present, but networks without images are faster on the CPU"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"Unknown device '{name}': use auto, cpu or cuda.") from None
    if device.type not in ("cpu", "cuda"):
        raise UsageError(f"Unknown device '{name}': use auto, cpu or cuda.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            "train.device is cuda, but torch finds no GPU: use auto or cpu, or install a CUDA build of torch."
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(
            f"train.device is {name}, but torch finds {torch.cuda.device_count()} GPU(s), counted from cuda:0."
        )
    return device, "as configured"


def choose_precision(name: str, device: torch.device, *, images: bool) -> tuple[str, str]:
    """The arithmetic of the CNN and the reason; networks without one are always float32."""
    if name != "auto":
        return name, "as configured"
    if not images:
        return "float32", "no CNN"
    if device.type == "cuda":
        if torch.cuda.get_device_capability(device)[0] >= 8:
            return "bf16", "this GPU supports it, several times faster than float32"
        return "float32", "this GPU has no bf16"
    if _cpu_has_bf16():
        return "bf16", "this CPU supports it, about 1.7 times faster than float32"
    return "float32", "this CPU has no bf16"


def _cpu_has_bf16() -> bool:
    """Instructions for it; without them it is emulated and slower than float32."""
    known = [getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported")]
    return any(supported() for supported in known if supported is not None)


def choose_threads(config: RunConfig, device: torch.device, *, images: bool) -> tuple[int, str]:
    """Torch threads and the reason."""
    if isinstance(config.train.threads, int):
        return config.train.threads, "as configured"
    if images and device.type == "cpu":
        return cores(), "a CNN on the CPU takes all cores"
    return 1, "one thread is faster than two for small networks"


def prepare_acting(policy: Policy) -> None:
    """Move a policy that only acts to where it acts fastest: one that reads images to the GPU, or to all cores."""
    images = bool(policy.encoder.images)
    device, _ = choose_device("auto", images=images)
    torch.set_num_threads(cores() if images and device.type == "cpu" else 1)
    policy.to(device)


def load_gpu_libraries(config: RunConfig) -> threading.Thread | None:
    """Load what a CNN needs on a GPU, in a thread next to the start of the envs: the first use reads gigabytes from the disk."""
    rules = rules_of(config.env)
    images = config.policy.cnn != "none" and rules is not None and rules.images
    device, _ = choose_device(config.train.device, images=images)
    if device.type != "cuda" or not images:
        return None
    thread = threading.Thread(target=_use_gpu, daemon=True)
    thread.start()
    return thread


def _use_gpu() -> None:
    """One small convolution forward and back."""
    x = torch.zeros((8, 4, 84, 84), dtype=torch.bfloat16, device="cuda").to(memory_format=torch.channels_last)
    weight = torch.zeros((32, 4, 8, 8), dtype=torch.bfloat16, device="cuda", requires_grad=True)
    y = torch.nn.functional.conv2d(x, weight.to(memory_format=torch.channels_last), stride=4).flatten(1)
    (y @ y.t()).sum().backward()
    torch.cuda.synchronize()


def repeatable_kernels() -> None:
    """Same bits every time on a GPU; cuBLAS reads its setting when the first product is computed there."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False


def prepare_gpu(precision: str, *, deterministic: bool) -> None:
    """Kernels of this process: repeatable ones, or the fastest of those that cuDNN offers for these shapes."""
    if deterministic:
        repeatable_kernels()
    else:
        torch.backends.cudnn.benchmark = True
        if (
            torch.are_deterministic_algorithms_enabled()
        ):  # by a run before this one; asked first: setting it takes a second
            torch.use_deterministic_algorithms(False)
    # torch has it on by default for convolutions, behind the back of `float32`; and a run before this one may have set it.
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"


def keep_freed_memory() -> None:
    """Have the allocator of this process keep what was freed, which makes updates faster.

    For processes that are ours alone: what it was before cannot be read, and so not be put back for a program that calls us.
    """
    if sys.platform == "linux":
        # glibc gives buffers above 128 kB back to the system at every free, and faults them in again at the next use:
        # a third of the time of a 2048-sample update. Keep them instead; but minibatches of images, above 16 MB, would leave
        # ever more holes among what is kept (heap of a Pong run after five iterations: 500 MB against 330).
        with contextlib.suppress(OSError, AttributeError):
            libc = ctypes.CDLL("libc.so.6")
            libc.mallopt(-3, 16 << 20)  # M_MMAP_THRESHOLD
            libc.mallopt(-1, 256 << 20)  # M_TRIM_THRESHOLD
