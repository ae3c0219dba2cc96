"""Errors are sentences with an exit code."""

from __future__ import annotations

import pytest

from gymnast import errors
from gymnast.errors import did_you_mean


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("gama", " Did you mean 'gamma'?"),
        ("GAMMA", " Did you mean 'gamma'?"),
        ("clip_rang", " Did you mean 'clip_range'?"),
        ("rate", " Did you mean 'learning_rate'?"),  # part of a name
        ("xyz", ""),
        ("gae", ""),  # shares letters with gamma
        ("", ""),
    ],
)
def test_suggestions(word, expected):
    assert did_you_mean(word, ["gamma", "clip_range", "clip_range_vf", "learning_rate"]) == expected


def test_suggestions_are_few_and_keep_their_case():
    assert did_you_mean("cartpole-v1", ["CartPole-v1", "Acrobot-v1"]).startswith(" Did you mean 'CartPole-v1'")
    assert did_you_mean("aa", ["aa1", "aa2", "aa3", "aa4"]).count("'") == 6


def test_exit_codes():
    """2 for what the user can correct in the command, 1 for what went wrong while it ran."""
    assert {error.exit_code for error in (errors.UsageError, errors.ConfigError, errors.MissingPackageError)} == {2}
    assert {error.exit_code for error in (errors.EnvError, errors.NonFiniteError, errors.CheckpointError)} == {1}
    assert 'pip install "gymnast[atari]"' in str(errors.MissingPackageError("Environment 'ALE/Pong-v5'", "atari"))
