"""Running mean and variance, exact over everything seen (Chan et al. 1979), in float64."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class RunningNorm(nn.Module):
    """(x − mean) / std, clipped. Updated once per iteration, fixed between collect and update, frozen in evaluation."""

    mean: Tensor
    variance: Tensor
    count: Tensor
    shift: Tensor
    scale: Tensor

    def __init__(self, size: int, clip: float, skip: Tensor | None = None, most: int | None = None) -> None:
        """`skip` marks entries that stay as they are; after `most` samples the statistics stay as they are."""
        super().__init__()
        self.clip, self.most = clip, most
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("shift", torch.zeros(size), persistent=False)
        self.register_buffer("scale", torch.ones(size), persistent=False)
        self._skip = skip  # entries that stay as they are (one-hot parts)

    def forward(self, x: Tensor) -> Tensor:
        """Normalised copy of `x` [B, size]."""
        return (x - self.shift).mul_(self.scale).clamp_(-self.clip, self.clip)

    @torch.no_grad()
    def update(self, x: Tensor) -> None:
        """Take in a batch [B, size]."""
        if self.most is not None and float(self.count) >= self.most:
            return
        x = x.double()
        n, total = float(x.shape[0]), float(self.count) + float(x.shape[0])
        delta = x.mean(0) - self.mean
        m2 = self.variance * self.count + x.var(0, unbiased=False) * n + delta.square() * (self.count * n / total)
        self.mean += delta * (n / total)
        self.variance.copy_(m2 / total)
        self.count.fill_(total)
        self.refresh()

    def refresh(self) -> None:
        """Recompute the float32 constants that `forward` uses; also needed after loading."""
        self.shift.copy_(self.mean)
        self.scale.copy_((self.variance + 1e-8).rsqrt())
        if self._skip is not None:
            self.shift[self._skip] = 0.0
            self.scale[self._skip] = 1.0
