"""Writes one episode as a folder: `trace.json` with every number, films that can be sought frame by frame, and tables.

A film has one picture per step, at an even pace, and every picture is a key frame: frame i is at (i + ½) ÷ fps.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gymnast.algorithms.credit import Credit
from gymnast.config.schema import EnvConfig
from gymnast.config.spec import EnvSpec
from gymnast.envs.make import make_envs
from gymnast.errors import EnvError
from gymnast.evaluation.film import Caption
from gymnast.evaluation.stage import Stage
from gymnast.evaluation.table import columns_of, rows_of
from gymnast.evaluation.trace import EpisodeTrace, Play, record_episode
from gymnast.evaluation.video import VideoWriter
from gymnast.inspecting import seeing
from gymnast.inspecting.asked import Asked
from gymnast.inspecting.grid import GridMap, grid_map
from gymnast.later import Later
from gymnast.metrics.parquet import ParquetWriter
from gymnast.policies.base import Policy
from gymnast.policies.convolution import image_shape
from gymnast.service.plain import plain

if TYPE_CHECKING:
    import av
else:
    av = Later("av")

FILE = "trace.json"
FILMS = ("frames", "input", "cam_action", "cam_value", "saliency_action", "saliency_value")
ALL_KEY_FRAMES = {"g": "1", "bf": "0", "crf": "18"}
"""A seek decodes one picture; a film becomes about five times as large."""
ROWS_PER_GROUP = 5000
Told = Callable[[int], None]


def write_bundle(
    folder: Path,
    policy: Policy,
    env: EnvConfig,
    spec: EnvSpec,
    asked: Asked,
    *,
    credit: Credit | None,
    about: dict[str, Any],
    on_step: Told = lambda step: None,
) -> EpisodeTrace:
    """Play the episode and write everything about it; the folder appears when it is whole. `about` goes into the file."""
    working = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(working, ignore_errors=True)
    working.mkdir(parents=True)
    try:
        trace = _write(working, policy, env, spec, asked, credit, about, on_step)
        shutil.rmtree(folder, ignore_errors=True)
        working.rename(folder)
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return trace


def _write(
    folder: Path,
    policy: Policy,
    env: EnvConfig,
    spec: EnvSpec,
    asked: Asked,
    credit: Credit | None,
    about: dict[str, Any],
    on_step: Told,
) -> EpisodeTrace:
    env = env.model_copy(update={"kwargs": {**env.kwargs, **asked.env_kwargs}})
    if credit is not None and asked.coefficients:
        credit = replace(credit, coefficients={**credit.coefficients, **asked.coefficients})
    films, problem = _Films(folder), _why_no_picture(env)
    play = Play(asked.temperature, asked.forced, asked.most_steps, on_step)
    film = None if problem else films.of_game()
    trace = record_episode(
        policy, env, seed=asked.seed, deterministic=asked.deterministic, credit=credit, film=film, play=play
    )
    films.close()
    fps = films.fps or trace.fps
    net = seeing.image_net(policy)
    layers: list[str] = []
    if net is not None and asked.see:
        layers = _look(films, policy, trace, fps)
        _write_picture(folder / "filters.png", seeing.filters(net))
    rows = list(rows_of(trace, spec))
    _write_tables(folder, trace, spec, rows)
    found = _facts(trace, policy, spec, asked, credit, rows) | {
        **about,
        "films": films.made,
        "fps": fps,
        "no_picture": problem,
        "layers": layers,
        "map": _map_of(policy, env),
        "states": [int(obs) for obs in trace.observations] if np.ndim(trace.observations[0]) == 0 else None,
    }
    (folder / FILE).write_text(json.dumps(plain(found), allow_nan=False), encoding="utf-8")
    return trace


def _facts(
    trace: EpisodeTrace,
    policy: Policy,
    spec: EnvSpec,
    asked: Asked,
    credit: Credit | None,
    rows: list[dict[str, Any]],
) -> dict[str, Any]:
    """Every number of the trace, by what it is called."""
    terms = list(dict.fromkeys(name for step in trace.terms for name in step))
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {
        "format": 1,
        "seed": asked.seed,
        "deterministic": asked.deterministic,
        "temperature": asked.temperature,
        "forced": {str(step): action for step, action in asked.forced.items()},
        "env_kwargs": asked.env_kwargs,
        "length": len(trace),
        "return": trace.ret,
        "ending": _ending(trace),
        "labels": _labels(policy, spec),
        "columns": {name: [row.get(name) for row in rows] for name in names},
        "probabilities": trace.probabilities,
        "masks": trace.masks or None,
        "values": trace.values if policy.has_critic else None,
        "rewards": trace.own_rewards,
        "terms": {name: [step.get(name) for step in trace.terms] for name in terms},
        "returns": trace.returns,
        "advantages": trace.advantages,
        "advantage_name": "advantage" if credit is None else credit.advantage_name,
        "td_errors": trace.td_errors,
        "coefficients": {} if credit is None else dict(credit.coefficients),
        "reads_images": seeing.image_net(policy) is not None,
        "stack": _stack_of(policy),
    }


def _ending(trace: EpisodeTrace) -> str:
    if trace.cut:
        return "cut off here"
    if trace.terminated:
        return "terminated"
    return "time limit"


def _labels(policy: Policy, spec: EnvSpec) -> list[str] | None:
    """The names of discrete choices, where the env has one for each."""
    if len(spec.actions) == getattr(policy.distribution, "n_params", 0):
        return list(spec.actions)
    return None


def _stack_of(policy: Policy) -> int:
    """How many pictures the policy sees at once, as channels."""
    net = seeing.image_net(policy)
    if net is None:
        return 1
    return int(image_shape(net.shape)[0])


def _map_of(policy: Policy, env: EnvConfig) -> GridMap | None:
    with closing(Stage(env, drawn=False)) as stage:
        return grid_map(policy, stage.bare_env)


def _why_no_picture(env: EnvConfig) -> str | None:
    """The sentence that an env which cannot draw answers with."""
    try:
        with closing(Stage(env, drawn=True)) as stage:
            stage.reset(0)
            stage.draw()
    except EnvError as error:
        make_envs(env, 1).close()  # an env that cannot be made at all says so itself
        return str(error)
    return None


# --- films --------------------------------------------------------------------------------------------------------


class _Films:
    """The films of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._game: _Game | None = None
        self.made: list[dict[str, Any]] = []
        """Name, file, size and count of each."""

    @property
    def fps(self) -> float | None:
        """The pace of the film of the game."""
        if self._game is None:
            return None
        return self._game.fps

    def of_game(self) -> _Game:
        """Takes the pictures that the env draws."""
        self._game = _Game(self._writer("frames"))
        return self._game

    def close(self) -> None:
        """Finish the film of the game."""
        if self._game is not None:
            self._game.close()
            self._note("frames", self._game.size, self._game.count, self._game.fps)

    def add(self, name: str, pictures: Iterable[np.ndarray], fps: float) -> None:
        """Another film, a picture per step; grey ones are [H, W]."""
        count, size = 0, (0, 0)
        with self._writer(name) as writer:
            writer.begin(fps)
            for picture in pictures:
                image = picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, -1)
                writer.add(image, count)
                count, size = count + 1, image.shape[:2]
        self._note(name, size, count, fps)

    def _writer(self, name: str) -> VideoWriter:
        writer = VideoWriter(self._folder / f"{name}.mp4")
        writer.format = replace(writer.format, options={**writer.format.options, **ALL_KEY_FRAMES})
        return writer

    def _note(self, name: str, size: tuple[int, ...], count: int, fps: float) -> None:
        height, width = size[:2]
        about = {"name": name, "file": f"{name}.mp4", "width": width, "height": height, "count": count, "fps": fps}
        self.made.append(about)


class _Game:
    """Films one picture per step, whatever number of frames the game has in between."""

    def __init__(self, writer: VideoWriter) -> None:
        self._writer = writer.__enter__()
        self.fps = 0.0
        self.count = 0
        self.size: tuple[int, ...] = (0, 0)

    def begin(self, fps: float) -> None:
        """At the pace of the game."""
        self.fps = fps
        self._writer.begin(fps)

    def wants(self, frame: int) -> bool:
        """Every step."""
        return True

    @property
    def black(self) -> bool:
        """As the file is."""
        return self._writer.black

    def add(self, picture: np.ndarray, frame: int, caption: Caption) -> None:
        """The next picture."""
        self._writer.add(picture, self.count)
        self.count, self.size = self.count + 1, picture.shape[:2]

    def close(self) -> None:
        """Write the file."""
        self._writer.__exit__(None, None, None)


def _look(films: _Films, policy: Policy, trace: EpisodeTrace, fps: float) -> list[str]:
    """Films of what goes on inside the network; the names of the layers."""
    observations = trace.observations
    actions = [*trace.actions, trace.actions[-1]]  # the last observation has no action: the one before is asked about
    films.add("input", seeing.inputs(policy, observations), fps)
    abouts: tuple[seeing.About, ...] = ("action", "value") if policy.has_critic else ("action",)
    for about in abouts:
        films.add(f"cam_{about}", _coloured(seeing.cam(policy, observations, actions, about)), fps)
        films.add(f"saliency_{about}", _coloured(seeing.saliency(policy, observations, actions, about)), fps)
    net = seeing.image_net(policy)
    assert net is not None
    names = [f"layer{number}" for number in range(1, len(net.body) + 1)]
    for number, name in enumerate(names):
        films.add(name, (maps[number] for maps in seeing.activations(policy, observations)), fps)
    return names


def _coloured(heats: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    return map(seeing.coloured, heats)


def _write_picture(path: Path, grey: np.ndarray) -> None:
    """A grey PNG, by the encoder that writes the films."""
    with av.open(str(path), "w", format="image2", options={"update": "1"}) as container:
        stream: Any = container.add_stream("png", rate=1)
        stream.height, stream.width, stream.pix_fmt = *grey.shape, "gray"
        for packet in stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(grey), format="gray")):
            container.mux(packet)
        for packet in stream.encode(None):
            container.mux(packet)


# --- tables -------------------------------------------------------------------------------------------------------


def _write_tables(folder: Path, trace: EpisodeTrace, spec: EnvSpec, rows: Sequence[dict[str, Any]]) -> None:
    kinds = columns_of(trace, spec)
    with (folder / "episode.parquet").open("wb") as file:
        writer = ParquetWriter(file, kinds)
        for start in range(0, len(rows), ROWS_PER_GROUP):
            writer.write(rows[start : start + ROWS_PER_GROUP])
        writer.close()
