"""Options of rl-zoo and CleanRL become settings; what nobody has is refused with a suggestion."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import gymnast

from gymnast.cli.foreign_flags import own_words
from gymnast.errors import UsageError

OWN = ("-n", "--n-timesteps", "--total-timesteps", "--env-steps", "--seed", "-q")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("X:ppo --learning-rate 3e-4", "X:ppo learning_rate=3e-4"),
        ("--learning-rate=3e-4 X:ppo", "X:ppo learning_rate=3e-4"),
        ("X:ppo --learning_rate 3e-4", "X:ppo learning_rate=3e-4"),
        ("X:ppo --ent-coef -0.1", "X:ppo ent_coef=-0.1"),
        ("X:ppo --algo.gamma 0.9 -n 5", "X:ppo -n 5 algo.gamma=0.9"),
        ("X-v0:ppo -params gamma:0.9 n_envs:4 -q", "X-v0:ppo -q gamma=0.9 n_envs=4"),
        ("--hyperparams gamma:0.9 X-v0:ppo", "X-v0:ppo gamma=0.9"),
        ("X:ppo --hyperparams=learning_rate:lin_1e-3", "X:ppo learning_rate=lin_1e-3"),
        ("X:ppo --env-kwargs map_name:8x8 desc:None", "X:ppo env.kwargs.map_name=8x8 env.kwargs.desc=null"),
        ("X:ppo --anneal-lr --seed 3", "X:ppo --seed 3 anneal_lr=true"),
        ("X:ppo --no-anneal-lr", "X:ppo anneal_lr=false"),
        ("X:ppo --cuda False gamma=1", "X:ppo gamma=1 cuda=false"),
        ("X:ppo --norm-adv=0", "X:ppo norm_adv=false"),
        ("X:ppo -n 5 -- --learning-rate 3", "X:ppo -n 5 -- --learning-rate 3"),
        ("X:ppo -P --uuid", "X:ppo"),
        ("X:ppo --track", "X:ppo --track=wandb"),
        ("X:ppo --track -n 5", "X:ppo --track=wandb -n 5"),
        ("X:ppo -tb logs", "X:ppo log.sinks=[tensorboard]"),
        ("X:ppo --wandb-project-name mine", "X:ppo wandb_project_name=mine"),
        ("X:ppo -n5 -q --seed=3", "X:ppo -n5 -q --seed=3"),
        ("X:ppo -n 1000 --total-timesteps 1e3", "X:ppo -n 1000 --total-timesteps 1e3"),
    ],
)
def test_words(typed: str, meant: str) -> None:
    assert own_words(typed.split(), OWN) == meant.split()


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("--learning-rat 3", "There is no option --learning-rat. Did you mean '--learning-rate'"),
        ("--sede 3", "Did you mean '--seed'"),
        ("--learning-rate", "--learning-rate needs a value."),
        ("-params -n 5", "-params needs settings, such as -params gamma:0.98."),
        ("-conf my.yml", "`gymnast config import-zoo FILE ENV`"),
        ("-n 5 --total-timesteps 6", "Two budgets are given, -n 5 and --total-timesteps 6"),
        ("-n5 --n-timesteps=6", "Two budgets"),
    ],
)
def test_what_is_refused(typed: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        own_words(["X:ppo", *typed.split()], OWN)
    assert sentence in str(caught.value)


def test_a_run_with_the_options_of_both(folder: Path) -> None:
    """As typed: the words reach the config of the run."""
    words = "--algo ppo --env CartPole-v1 -n 64 --num-envs 4 --num-minibatches 4 --learning-rate 3e-4 --anneal-lr"
    words += " --eval-episodes 2 --verbose 0"
    done = gymnast("train", *words.split(), "--log-folder", "logs", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "over 2 episodes" in done.stdout and "config" not in done.stdout
    shown = gymnast("config", "show", "@last", "-f", "logs", cwd=folder).stdout
    assert "linear 0.0003 → 0" in shown


def test_so_many_envs_are_asked_about(folder: Path) -> None:
    """Without a terminal nobody can be asked, so nothing is started."""
    done = gymnast("train", "CartPole-v1:ppo", "n_envs=1000000", cwd=folder)
    assert done.returncode == 2
    assert "1,000,000 envs × 16 steps are 16,000,000 samples per iteration." in done.stderr
    assert "more than the whole budget of 50,000 env steps" in done.stderr
    assert "--yes starts the run" in done.stderr and not (folder / "runs").exists()
