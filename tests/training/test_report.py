"""What is printed before a run says which network it trains."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from gymnast.config.load import resolve
from gymnast.training.build import build
from gymnast.training.keeping.report import Reporter

SMALL = ("env.n_envs=2", "algo.n_steps=8", "algo.batch_size=16", "env.vectorization=inprocess", "train.device=cpu")


@pytest.mark.parametrize(
    ("reference", "overrides", "line"),
    [
        ("CartPole-v1:ppo", (), "tanh 64×64, separate trunks, 9,155 parameters"),
        ("CartPole-v1:ppo", ("policy.shared_trunk=true",), "tanh 64×64, shared trunk, 4,675 parameters"),
        (
            "ALE/Pong-v5:rgb_ppo",
            ("policy.precision=bf16",),
            "nature CNN, 512 features, bf16, linear heads, 1,687,719 parameters",
        ),
        (
            "ALE/Pong-v5:rgb_ppo",
            ("policy.cnn=impala", "policy.hidden=[32]", "policy.shared_trunk=true", "policy.precision=float32"),
            "impala CNN, 256 features, float32, relu 32 shared trunk, 1,097,687 parameters",
        ),
        (
            "ALE/Pong-v5:rgb_ppo",
            ("policy.cnn=[{channels: 4, kernel: 8, stride: 8}]", "policy.cnn_features=9", "policy.precision=tf32"),
            "1-layer CNN, 9 features, tf32, linear heads, 4,707 parameters",
        ),
    ],
)
def test_the_network(reference: str, overrides: tuple[str, ...], line: str) -> None:
    assert _said(reference, *overrides) == line


def test_why_a_precision_was_chosen() -> None:
    """`auto` says what it took and why; nothing is said about what the config names."""
    told = _said("ALE/Pong-v5:rgb_ppo")
    assert told.startswith(
        ("nature CNN, 512 features, bf16 (this CPU supports", "nature CNN, 512 features, float32 (this CPU")
    )
    assert told.endswith("), linear heads, 1,687,719 parameters")


def _said(reference: str, *overrides: str) -> str:
    """The line about the model."""
    resolved = resolve(reference, [*SMALL, *overrides])
    session = build(resolved.config)
    try:
        text = io.StringIO()
        Reporter(Console(file=text, width=300)).summary(session, resolved, None)
    finally:
        session.envs.close()
    (line,) = [line for line in text.getvalue().splitlines() if line.startswith("   model  ")]
    return line.removeprefix("   model  ")


def test_a_terminal_gets_whole_words_and_a_pipe_whole_lines():
    """`algo.learning_rate=0.0` / `02` was what a terminal of 80 columns made of an alert."""
    words = "warning: alert critic_useless: The critic explains 0.02 of the variance of returns. Try: algo.learning_rate=0.002"
    shown = {}
    for terminal in (True, False):
        out = io.StringIO()
        Reporter(Console(file=out, width=80, force_terminal=terminal, color_system=None)).say(words)
        shown[terminal] = out.getvalue().rstrip("\n").split("\n")
    assert shown[False] == [words]
    assert len(shown[True]) == 2 and " ".join(line.strip() for line in shown[True]) == words
