"""Draws the pictures of docs/reading-a-run.md from runs that it trains: `python docs/tools/draw_run_charts.py`.

Each picture shows one metric of a healthy run on the left and of unhealthy ones on the right. The runs take a minute on one core;
another machine draws the same curves up to rounding. Needs matplotlib (`pip install "gymnast[plots]"`).
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gymnast import api
from gymnast.metrics.sinks.jsonl import MetricRows

FOLDER = Path(__file__).resolve().parents[1] / "images" / "reading"
GREEN, RED, ORANGE, GREY = "#1a7f37", "#cf222e", "#bc6c00", "#6e7781"
MOST_POINTS = 200
Row = dict[str, Any]


@dataclass(frozen=True)
class Trained:
    """One run: its preset, the settings that differ from it, and its budget."""

    preset: str
    settings: tuple[str, ...] = ()
    env_steps: int = 50_000
    seed: int = 1


GO_ON = "train.stop_when_solved=false"
EVALUATE = ("eval.every=5000", "eval.start_fraction=null", "eval.episodes=40")
HEALTHY = Trained("CartPole-v1:ppo", (GO_ON, *EVALUATE))
HEALTHY_A2C = Trained("CartPole-v1:a2c", (GO_ON,))
RATE_HIGH = Trained("CartPole-v1:ppo", ("algo.learning_rate=0.5",))
FELL = Trained("CartPole-v1:a2c", ("algo.learning_rate=[[0, 3e-3], [0.5, 3e-3], [0.55, 0.3]]", GO_ON))
OTHER_EVALUATION = Trained("CartPole-v1:ppo", (GO_ON, *EVALUATE, "eval.env={time_limit: 100}"))
BONUS = Trained("CartPole-v1:ppo", ("algo.ent_coef=10",))
NARROW_CLIP = Trained("CartPole-v1:ppo", ("algo.clip_range=0.001", GO_ON))
HUGE_REWARDS = Trained(
    "CartPole-v1:ppo", ("env.wrappers=[{id: reward_scale, factor: 10000}]", "algo.normalize_reward=false")
)
SATURATED = Trained("CartPole-v1:reinforce", ("algo.learning_rate=1.0",), seed=0)
RATE_LOW = Trained("CartPole-v1:ppo", ("algo.learning_rate=1e-6",))
PENDULUM = Trained("Pendulum-v1:ppo", (GO_ON,), 100_000)
NARROW_ACTIONS = Trained("Pendulum-v1:ppo", ("policy.log_std_init=-5",), 100_000)
HUGE_COSTS = Trained(
    "Pendulum-v1:ppo", ("env.wrappers=[{id: reward_scale, factor: 10000}]", "algo.normalize_reward=false"), 100_000
)
LARGE_ACTIONS = Trained("Pendulum-v1:ppo", ("policy.log_std_init=4",), 100_000)


@dataclass(frozen=True)
class Line:
    """One curve: a metric of a run."""

    run: Trained
    metric: str
    label: str
    colour: str
    dots: bool = False


@dataclass(frozen=True)
class Picture:
    """Two panels with the same axes' meaning, each with a level worth knowing."""

    name: str
    metric: str
    healthy: tuple[Line, ...]
    unhealthy: tuple[Line, ...]
    levels: tuple[tuple[float, str], ...] = ()
    log: bool = False
    limits: tuple[float, float] | None = None
    floor: float = 0.0
    """On a logarithmic axis, smaller values are drawn here."""


def _one(run: Trained, metric: str, label: str, colour: str = GREEN) -> tuple[Line, ...]:
    return (Line(run, metric, label, colour),)


def _pair(metric: str, first: Trained, said: str, second: Trained, also: str) -> tuple[Line, ...]:
    return (Line(first, metric, said, RED), Line(second, metric, also, ORANGE))


RETURN, EVALUATED = "rollout/return_mean", "eval/return_mean"
ENTROPY, KL, CLIP = "train/entropy", "train/approx_kl", "train/clip_fraction"
VARIANCE, VALUE, GRADIENT, STD = (
    "train/explained_variance",
    "train/value_loss",
    "train/grad_norm",
    "train/action_std",
)

PICTURES = (
    Picture(
        "return",
        RETURN,
        _one(HEALTHY, RETURN, "CartPole-v1:ppo"),
        _pair(RETURN, FELL, "learns, then loses it (a2c, rate rises)", RATE_HIGH, "never learns (rate 0.5)"),
        ((475, "solved"), (22.4, "random play")),
        limits=(0, 520),
    ),
    Picture(
        "evaluation",
        EVALUATED,
        (Line(HEALTHY, RETURN, "training", GREY), Line(HEALTHY, EVALUATED, "evaluation", GREEN, dots=True)),
        (
            Line(OTHER_EVALUATION, RETURN, "training", GREY),
            Line(OTHER_EVALUATION, EVALUATED, "evaluation, cut off after 100 steps", RED, dots=True),
        ),
        ((475, "solved"),),
        limits=(0, 520),
    ),
    Picture(
        "entropy",
        ENTROPY,
        _one(HEALTHY, ENTROPY, "CartPole-v1:ppo"),
        _pair(ENTROPY, RATE_HIGH, "collapsed (rate 0.5)", BONUS, "held up by the bonus (ent_coef 10)"),
        ((0.693, "log 2: uniform play"),),
        limits=(-0.03, 0.8),
    ),
    Picture(
        "approx_kl",
        KL,
        _one(HEALTHY, KL, "CartPole-v1:ppo"),
        _pair(KL, RATE_HIGH, "steps too large (rate 0.5)", RATE_LOW, "hardly any step (rate 1e-6)"),
        ((0.15, "alert kl_high"), (0.002, "")),
        log=True,
        limits=(1e-8, 100),
        floor=1e-8,
    ),
    Picture(
        "clip_fraction",
        CLIP,
        _one(HEALTHY, CLIP, "CartPole-v1:ppo, clip_range 0.3"),
        _pair(CLIP, NARROW_CLIP, "clip_range 0.001", RATE_LOW, "nothing to clip (rate 1e-6)"),
        ((0.5, "alert clip_fraction_high"),),
        limits=(-0.03, 1),
    ),
    Picture(
        "explained_variance",
        VARIANCE,
        _one(PENDULUM, VARIANCE, "Pendulum-v1:ppo"),
        _one(HUGE_COSTS, VARIANCE, "rewards × 10,000", RED),
        ((1.0, "perfect"), (0.0, "no better than a constant")),
        limits=(-0.3, 1.15),
    ),
    Picture(
        "value_loss",
        VALUE,
        _one(HEALTHY_A2C, VALUE, "CartPole-v1:a2c"),
        _one(FELL, VALUE, "the rate rises to 0.3 half-way", RED),
        log=True,
    ),
    Picture(
        "grad_norm",
        GRADIENT,
        _one(HEALTHY, GRADIENT, "CartPole-v1:ppo"),
        _pair(GRADIENT, HUGE_REWARDS, "exploded (rewards × 10,000)", SATURATED, "vanished (reinforce, rate 1)"),
        ((1.0, "max_grad_norm"),),
        log=True,
        limits=(1e-9, 1e9),
        floor=1e-9,
    ),
    Picture(
        "action_std",
        STD,
        _one(PENDULUM, STD, "Pendulum-v1:ppo"),
        _pair(STD, LARGE_ACTIONS, "far wider than the actions (log_std_init 4)", NARROW_ACTIONS, "no exploration (−5)"),
        ((2.0, "bound of the action"),),
        log=True,
        limits=(3e-3, 300),
    ),
)


@cache
def rows(run: Trained) -> list[Row]:
    """Train it and read its metrics."""
    with tempfile.TemporaryDirectory() as folder:
        done = api.train(run.preset, *run.settings, env_steps=run.env_steps, seed=run.seed, runs_dir=folder)
        return list(MetricRows(done.run.metrics_path))


def points(line: Line, floor: float) -> tuple[list[float], list[float]]:
    """Steps and values, thinned to what a small picture can show."""
    known = [(row["env_steps"], row[line.metric]) for row in rows(line.run) if row.get(line.metric) is not None]
    every = max(1, len(known) // MOST_POINTS)
    return [step for step, _ in known[::every]], [max(value, floor) if floor else value for _, value in known[::every]]


def draw(picture: Picture) -> Figure:
    """Both panels."""
    figure = Figure(figsize=(8.2, 2.5), facecolor="white", layout="constrained")
    left, right = figure.subplots(1, 2, sharey=picture.limits is not None)
    panel(left, picture, picture.healthy, "healthy")
    panel(right, picture, picture.unhealthy, "unhealthy")
    left.set_ylabel(picture.metric)
    return figure


def panel(axes: Axes, picture: Picture, lines: Sequence[Line], title: str) -> None:
    """One side."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    for value, words in picture.levels:
        axes.axhline(value, color=GREY, linestyle=":", linewidth=1)
        axes.annotate(
            words, (1, value), xycoords=("axes fraction", "data"), xytext=(-2, 2), textcoords="offset points",
            ha="right", va="bottom", fontsize=7, color=GREY,
        )  # fmt: skip
    for line in lines:
        steps, values = points(line, picture.floor)
        style = "o-" if line.dots else "-"
        axes.plot(steps, values, style, color=line.colour, linewidth=1.4, markersize=3, label=line.label)
    if picture.log:
        axes.set_yscale("log")
    if picture.limits is not None:
        axes.set_ylim(*picture.limits)
    axes.set_xlabel("env steps", fontsize=8)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k")
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7, frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1)


def main() -> None:
    """Write all pictures, or one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these pictures")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    given = parser.parse_args()
    mpl.rcParams |= {"svg.hashsalt": "gymnast", "svg.fonttype": "none"}  # equal pictures are equal files
    given.folder.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        if not given.names or picture.name in given.names:
            path = given.folder / f"{picture.name}.svg"
            draw(picture).savefig(path, metadata={"Date": None})
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
