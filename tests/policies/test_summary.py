"""The model summary counts what is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from launch import gymnast
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from gymnast.config.schema import PolicyConfig
from gymnast.policies.actor_critic import ActorCritic
from gymnast.policies.summary import Layer, summarise

BOX = spaces.Box(-1.0, 1.0, (3,), np.float32)
MIXED = spaces.Dict({"picture": spaces.Box(0, 255, (2, 5), np.uint8), "gear": spaces.Discrete(4)})

IMAGE = spaces.Box(0, 255, (3, 37, 44), np.uint8)
LAYERS = [{"channels": 5, "kernel": 3, "stride": 2, "padding": 1}, {"channels": 4, "kernel": 2}]
SENSES = spaces.Dict({"front": IMAGE, "speed": BOX, "back": spaces.Box(0, 255, (40, 36, 1), np.uint8)})


def policy(observation: spaces.Space, action: spaces.Space, *, critic: bool = True, **config: Any) -> ActorCritic:
    """A policy of two small hidden layers."""
    return ActorCritic(PolicyConfig(**{"hidden": [8, 4], **config}), observation, action, critic=critic)


CASES: dict[str, ActorCritic] = {
    "plain": policy(BOX, spaces.Discrete(2)),
    "Gaussian": policy(BOX, spaces.Box(-1, 1, (2,)), normalize_obs=True),
    "shared": policy(MIXED, spaces.MultiDiscrete([3, 2]), shared_trunk=True, layer_norm=True, normalize_obs=True),
    "indices": policy(spaces.Discrete(6), spaces.Discrete(2), critic_hidden=[3]),
    "several indices": policy(spaces.MultiDiscrete([3, 2]), spaces.Discrete(2), dropout=0.1),
    "no critic": policy(BOX, spaces.Discrete(2), critic=False),
    "no hidden layers": policy(BOX, spaces.Discrete(2), hidden=[]),
    "Nature's CNN": policy(IMAGE, spaces.Discrete(2), hidden=[]),
    "IMPALA's CNN, shared layers behind it": policy(IMAGE, spaces.Discrete(2), cnn="impala", shared_trunk=True),
    "a CNN layer by layer": policy(IMAGE, spaces.Discrete(2), cnn=LAYERS, cnn_features=7),
    "images among other parts": policy(SENSES, spaces.Discrete(2), normalize_obs=True),
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_forgotten(case: str) -> None:
    """Every trained and every saved number is in exactly one row."""
    model = CASES[case]
    summary = summarise(model, spaces.Discrete(2))
    assert summary.parameters == sum(parameter.numel() for parameter in model.parameters())
    saved = sum(tensor.numel() for tensor in model.state_dict().values())
    assert summary.parameters + sum(layer.statistics for layer in summary.layers) == saved
    assert summary.size == sum(tensor.nbytes for tensor in model.state_dict().values())
    assert sum(summary.parts().values()) == summary.parameters


def test_rows_of_a_small_policy() -> None:
    """Literal numbers: y = Wx + b of 3 → 8 is 8·3 products and as many additions, plus 8."""
    summary = summarise(CASES["Gaussian"], spaces.Box(-1, 1, (2,)))
    assert summary.layers[:7] == [
        Layer("encoder", "read", "3", "3"),
        Layer("encoder", "normalise", "3", "3", statistics=7, flops=6),
        Layer("actor", "linear", "3", "8", 32, flops=56),
        Layer("actor", "tanh", "8", "8", flops=8),
        Layer("actor", "linear", "8", "4", 36, flops=68),
        Layer("actor", "tanh", "4", "4", flops=4),
        Layer("actor", "linear", "4", "2", 10, flops=18),
    ]
    assert summary.layers[7] == Layer("log_std", "free parameter", "–", "2", 2)
    assert summary.parts() == {"encoder": 0, "actor": 78, "log_std": 2, "critic": 73}
    assert summary.action_flops == 6 + 56 + 8 + 68 + 4 + 18
    assert summary.distribution == "Gaussian"


def test_parts_of_an_observation() -> None:
    """Each part of a Dict has its row; indices are looked up, not multiplied."""
    names = [(layer.name, layer.input, layer.output) for layer in summarise(CASES["shared"], BOX).layers[:4]]
    assert set(names) == {
        ("one-hot gear", "1", "4"),
        ("flatten picture", "2×5", "10"),
        ("join", "4 + 10", "14") if names[0][0] == "one-hot gear" else ("join", "10 + 4", "14"),
        ("normalise", "14", "14"),
    }
    first = next(layer for layer in summarise(CASES["several indices"], BOX).layers if layer.part == "actor")
    assert (first.parameters, first.flops) == (5 * 8 + 8, 2 * 8)


@pytest.mark.parametrize("case", [case for case in CASES if "CNN" in case])
def test_arithmetic_of_images(case: str) -> None:
    """FLOPs of convolutions and products as torch counts them, who leaves biases, activations and pools out."""
    model = CASES[case]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(1, *IMAGE.shape, dtype=torch.uint8))
    counted, summary = counter.get_total_flops(), summarise(model, spaces.Discrete(2))
    ours = sum(layer.flops for layer in summary.layers)
    assert counted < ours < 1.05 * counted
    assert summary.layers[0] == Layer("encoder", "image", "3×37×44", "3×37×44")


def test_rows_of_a_cnn() -> None:
    """Literal numbers: 19×22 places, 3·3·3 products each, as many additions with the bias's, and the ReLU."""
    summary = summarise(CASES["a CNN layer by layer"], spaces.Discrete(2))
    assert summary.layers[1:4] == [
        Layer("encoder", "conv 3×3, stride 2, padding 1, relu", "3×37×44", "5×19×22", 140, flops=2090 * 56),
        Layer("encoder", "conv 2×2, relu", "5×19×22", "4×18×21", 84, flops=1512 * 42),
        Layer("encoder", "linear, relu", "1512", "7", 1512 * 7 + 7, flops=2 * 1512 * 7 + 14),
    ]
    joined = [layer for layer in summarise(CASES["images among other parts"], BOX).layers if layer.name == "join"]
    assert joined == [Layer("encoder", "join", "512 + 512 + 3", "1027")]


def test_modules_it_does_not_know() -> None:
    """A further module is counted all the same."""
    model = policy(BOX, spaces.Discrete(2))
    model.memory = nn.GRU(4, 4)
    summary = summarise(model, spaces.Discrete(2))
    assert summary.parts()["memory"] == 2 * 3 * 4 * (4 + 1)
    assert summary.parameters == sum(parameter.numel() for parameter in model.parameters())


def test_the_command(tmp_path: Path) -> None:
    """For a config that was never trained, with settings changed, as text and as JSON; a typing error is a sentence."""
    text = gymnast("model", "CartPole-v1:ppo", "policy.hidden=[32]", cwd=tmp_path)
    assert (text.returncode, text.stderr) == (0, "")
    told = json.loads(gymnast("model", "CartPole-v1:ppo", "policy.hidden=[32]", "--json", cwd=tmp_path).stdout)
    assert told["parameters"] == (4 * 32 + 32) * 2 + 33 * 2 + 33
    assert f"{told['parameters']:,} parameters" in text.stdout
    assert not any(tmp_path.iterdir())
    wrong = gymnast("model", "CartPol-v1", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "Did you mean 'CartPole-v1'" in wrong.stderr
    nothing = gymnast("model", cwd=tmp_path)
    assert nothing.returncode == 2
    assert "There are no runs" in nothing.stderr
