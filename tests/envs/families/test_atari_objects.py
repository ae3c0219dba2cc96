"""Object features: what the memory says is what the picture shows, within the ranges that are promised."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import ale_py
import numpy as np
import pytest

from gymnast.config.atari import AtariConfig
from gymnast.envs.families.atari.game import AtariGame
from gymnast.envs.families.atari.objects import GAMES, ObjectState, map_of
from gymnast.envs.families.atari.objects.breakout import BALL_Y, COLUMNS, OTHERS, ROWS
from gymnast.errors import UsageError

NOOP, FIRE, RIGHT, LEFT = 0, 1, 3, 4
PONG_COLOURS = {"ball": 236, "player": 92, "enemy": 213}
"""Amount of red, by which objects differ from each other and from the ground."""
BREAKOUT_RED = 200
PONG_TOP, PONG_BOTTOM = 34, 193
UNDRAWN = 2
"""Frames at the start of a game that are still black."""
BRICKS_TOP, PADDLE_TOP, LAST_LINE = 57, 189, 194

Player = Callable[[dict[str, float], np.random.Generator], int]
Box = tuple[int, int, int, int]
"""Left, right, top and bottom pixel."""
Frame = tuple[int, np.ndarray, Any, np.ndarray]
"""Number in its game, memory, what is in the picture, and observation."""


def console(game: str, seed: int) -> ale_py.ALEInterface:
    """A game on the emulator."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setInt("random_seed", seed)
    ale.setFloat("repeat_action_probability", 0.25 if seed % 2 else 0.0)
    ale.loadROM(ale_py.roms.get_rom_path(game))
    ale.reset_game()
    return ale


def at_random(_: dict[str, float], generator: np.random.Generator) -> int:
    """Any button."""
    return int(generator.choice([NOOP, FIRE, RIGHT, LEFT]))


def following(seen: dict[str, float], generator: np.random.Generator) -> int:
    """Keep the paddle near the ball, so that rallies happen; now and then any button."""
    if not seen["ball visible"] or generator.random() < 0.1:
        return at_random(seen, generator)
    if "player y" in seen:
        away = seen["player y"] - seen["ball y"]
        return NOOP if abs(away) < 3 else RIGHT if away > 0 else LEFT
    away = seen["ball x"] - seen["paddle x"]
    return NOOP if abs(away) < 4 else RIGHT if away > 0 else LEFT


def frames(game: str, player: Player, seed: int, count: int) -> Iterator[Frame]:
    """Every frame of some games, a button is held for four."""
    ale, found, generator = console(game, seed), map_of(game), np.random.default_rng(seed)
    before: ObjectState | None = None
    age = button = 0
    for number in range(count):
        values, before = found.read(ale.getRAM(), before)
        yield age, ale.getRAM(), LOOK[game](ale.getScreenRGB()[..., 0]), values
        if number % 4 == 0:
            button = player(dict(zip(found.names, values.tolist(), strict=True)), generator)
        ale.act(button)
        age += 1
        if ale.game_over():
            ale.reset_game()
            before, age = None, 0


@cache
def played(game: str) -> list[Frame]:
    """Several thousand frames by both players."""
    plan = [(at_random, 0), (at_random, 1), (following, 2), (following, 3), (following, 4)]
    return [frame for player, seed in plan for frame in frames(game, player, seed, 900)]


def box(mask: np.ndarray, x: int, y: int) -> Box | None:
    """Where something is in a part of the picture that begins at x, y."""
    rows = np.flatnonzero(mask.any(1))
    if not len(rows):
        return None
    columns = np.flatnonzero(mask[rows[0] : rows[-1] + 1].any(0))
    return x + int(columns[0]), x + int(columns[-1]), y + int(rows[0]), y + int(rows[-1])


def pong_picture(red: np.ndarray) -> dict[str, Box | None]:
    """Where the objects are between the walls."""
    field = red[PONG_TOP : PONG_BOTTOM + 1]
    return {name: box(field == colour, 0, PONG_TOP) for name, colour in PONG_COLOURS.items()}


def breakout_picture(red: np.ndarray) -> tuple[np.ndarray, Box | None, bool]:
    """Which bricks stand, where the ball is above the paddle (neither black nor a whole brick), and whether it is below."""
    coloured = red[:PADDLE_TOP, 8:152] > 0
    coloured[:32] = False  # the upper wall
    cells = coloured[BRICKS_TOP : BRICKS_TOP + 6 * ROWS].reshape(ROWS, 6, COLUMNS, 8)
    stands = cells.all((1, 3))
    coloured[BRICKS_TOP : BRICKS_TOP + 6 * ROWS] = (cells & ~stands[:, None, :, None]).reshape(6 * ROWS, 8 * COLUMNS)
    return stands, box(coloured, 8, 0), bool((red[PADDLE_TOP + 4 : LAST_LINE + 1, 8:152] > 0).any())


LOOK: dict[str, Callable[[np.ndarray], Any]] = {"pong": pong_picture, "breakout": breakout_picture}


def test_pong_ball_is_where_the_picture_has_it() -> None:
    seen = hidden = 0
    for age, _, picture, values in played("pong"):
        if age < UNDRAWN:
            continue
        x, y, _, _, visible, below, player_y, *_ = values
        assert below == (y - player_y if visible else 0)
        found = picture["ball"]
        if not visible:
            assert found is None
            assert x == y == 0
        elif found is None:
            hidden += 1
            assert y + 1.5 < PONG_TOP  # all four lines are behind the upper wall
        elif x < 159:  # half a ball at the very edge is drawn at the other one
            seen += 1
            left, right, top, bottom = found
            assert (left + right) / 2 == x
            assert abs((top + bottom) / 2 - y) <= 2
    assert seen > 1500
    assert hidden < seen / 100


@pytest.mark.parametrize(("name", "left"), [("player", 140), ("enemy", 16)])
def test_pong_paddles_are_where_the_picture_has_them(name: str, left: int) -> None:
    names = map_of("pong").names
    seen = missing = 0
    for age, _, picture, values in played("pong"):
        if age < UNDRAWN:
            continue
        y = values[names.index(f"{name} y")]
        visible = values[names.index("enemy visible")] if name == "enemy" else True
        found = picture[name]
        assert bool(visible) == (found is not None)
        if found is None:
            missing += 1
            assert y == 0
            continue
        seen += 1
        assert found[:2] == (left, left + 3)
        assert abs(found[2] - max(PONG_TOP, y - 7.5)) <= 1  # walls hide the rest
        assert abs(found[3] - min(PONG_BOTTOM, y + 7.5)) <= 1
    assert seen > 3500
    assert (missing > 100) == (name == "enemy")


def test_breakout_ball_and_bricks_are_where_the_picture_has_them() -> None:
    seen, lost, fewest = 0, 0, ROWS * COLUMNS
    for _, _, (stands, found, below), values in played("breakout"):
        assert np.array_equal(stands.ravel(), values[OTHERS:] == 1)
        fewest = min(fewest, int(stands.sum()))
        x, y, _, _, visible, *_ = values
        if not visible or 8 <= x <= 151:
            assert below == (y + 1.5 >= PADDLE_TOP + 4)
            lost += below
        if not visible:
            assert found is None
            assert x == y == 0
        elif found is None:  # over a brick or a side wall of its own colour, or at the height of the paddle
            over_brick = BRICKS_TOP - 2 < y < BRICKS_TOP + 6 * ROWS + 2 and stands[:, int((x - 8) // 8)].any()
            assert over_brick or x < 8 or x > 151 or y - 1.5 >= PADDLE_TOP
        else:
            seen += 1
            left, right, top, bottom = found
            assert abs((left + right) / 2 - x) <= 0.5
            assert abs((top + bottom) / 2 - y) <= 2.5
    assert seen > 1500
    assert lost > 20
    assert fewest < 105


def test_breakout_shows_every_brick_by_itself() -> None:
    """Any pattern of bricks written into the memory is what the picture shows and what is read."""
    ale, generator = console("breakout", 0), np.random.default_rng(0)
    found = map_of("breakout")
    full, start = ale.getRAM()[:36], ale.cloneState()
    for _ in range(60):
        ale.restoreState(start)  # the game soon mends a wall that does not fit its score
        pairs = generator.integers(0, 2, (36, 4)).repeat(2, axis=1).astype(np.uint8)
        for byte, value in enumerate(np.packbits(pairs, axis=1).ravel() & full):
            ale.setRAM(byte, int(value))
        ale.act(NOOP)
        values, _ = found.read(ale.getRAM(), None)
        stands, *_ = breakout_picture(ale.getScreenRGB()[..., 0])
        assert 20 < stands.sum() < 90
        assert np.array_equal(stands.ravel(), values[OTHERS:] == 1)


@pytest.mark.parametrize("ceiling", [False, True])
def test_breakout_paddle_is_where_the_picture_has_it(ceiling: bool) -> None:
    """A ball that reaches the ceiling makes the paddle smaller."""
    ale, found, generator = console("breakout", 0), map_of("breakout"), np.random.default_rng(1)
    widths = set()
    for number in range(1000):
        values, _ = found.read(ale.getRAM(), None)
        seen = dict(zip(found.names, values.tolist(), strict=True))
        assert seen["lives"] == ale.lives()
        if not seen["ball visible"] or seen["ball y"] < 185:  # lower, the ball's pixels are beside the paddle's
            row = np.flatnonzero(ale.getScreenRGB()[190, 8:152, 0] == BREAKOUT_RED) + 8
            assert row[0] == seen["paddle x"] - seen["paddle width"] / 2 + 0.5
            assert row[-1] == min(151, seen["paddle x"] + seen["paddle width"] / 2 - 0.5)
            widths.add(seen["paddle width"])
        if ceiling and number % 50 == 0 and seen["ball visible"] and len(widths) == 1:
            ale.setRAM(BALL_Y, 35)  # between wall and ceiling
        ale.act(following(seen, generator))
        if ale.game_over():
            ale.reset_game()
    assert widths == ({16.0, 12.0} if ceiling else {16.0})


@pytest.mark.parametrize("game", GAMES)
def test_values_stay_within_their_ranges(game: str) -> None:
    found = map_of(game)
    values = np.stack([values for *_, values in played(game)])
    assert values.dtype == np.float32
    assert values.shape[1:] == found.space.shape == (len(found.names),)
    assert (values >= found.space.low).all()
    assert (values <= found.space.high).all()
    assert len(set(found.names)) == len(found.names)
    used = np.ptp(values[:, :8], axis=0)
    assert (used[[name != "paddle width" for name in found.names[:8]]] > 0).all()


def served(before: np.ndarray, values: np.ndarray) -> bool:
    """Whether the ball has come into play since."""
    return bool(values[4] and not before[4])


@pytest.mark.parametrize(("game", "moving"), [("pong", ("ball", "player", "enemy")), ("breakout", ("ball", "paddle"))])
def test_velocities_are_counted_from_the_observation_before(game: str, moving: tuple[str, ...]) -> None:
    names = map_of(game).names
    recorded = played(game)
    for name in moving:
        flag = names.index(f"{name} visible") if f"{name} visible" in names else None
        for axis in "xy":
            if f"{name} {axis}" not in names:
                continue
            place, speed = names.index(f"{name} {axis}"), names.index(f"{name} d{axis}")
            moved = 0
            for (_, _, _, before), (age, _, _, values) in itertools.pairwise(recorded):
                known = age > 0 and (flag is None or (before[flag] and values[flag]))
                if name == "enemy":
                    known = known and not served(before, values)
                assert values[speed] == (values[place] - before[place] if known else 0)
                assert abs(values[speed]) <= 12  # in one frame: no jump counts as movement
                moved += bool(values[speed])
            assert moved > 300


@pytest.mark.parametrize("game", GAMES)
def test_an_episode_begins_at_rest_and_reading_changes_nothing(game: str) -> None:
    found = map_of(game)
    speeds = [index for index, name in enumerate(found.names) if name.split()[-1] in ("dx", "dy")]
    _, ram, _, moving = next(frame for frame in played(game) if frame[3][2] and frame[3][3])
    assert moving[speeds].any()
    kept = ram.copy()
    first, state = found.read(ram, None)
    again, _ = found.read(ram, state)
    assert not first[speeds].any()
    assert np.array_equal(first, again)
    assert first is not again
    assert np.array_equal(ram, kept)


def test_a_game_without_a_map_names_those_that_have_one() -> None:
    with pytest.raises(UsageError, match=r"'tetris'.*breakout, pong.*env\.atari\.obs"):
        map_of("tetris")
    with pytest.raises(UsageError, match=r"Did you mean 'pong'\?"):
        map_of("pongs")


PLANS = np.array(list(itertools.product((0, -1, 1), repeat=5)))
"""What may be done in the next five steps: nothing, up or down."""


def defend(seen: list[float], last: int) -> int:
    """Up (-1), down (1) or nothing, so that the paddle meets the ball, by what the features say alone.

    The paddle glides to where its knob points: in a step it makes three quarters of the way that is left, and a button moves the
    knob by 23 pixels, of which the paddle makes 6 in the same step.
    """
    x, y, dx, dy, visible, _, player_y, player_dy, *_ = seen
    steps, goal = 3.0, y if visible else 114.0
    if dx > 0:
        steps = max((139 - x) / dx, 0.01)
        goal = 36 + abs((y + dy * steps - 36 + 155) % 310 - 155)  # mirrored at both walls
    place, left = np.full(len(PLANS), player_y), np.full(len(PLANS), player_dy / 3 + 15 * last)
    for number, move in enumerate(PLANS.T):
        place = place + min(1, max(0, steps - number)) * (0.75 * left + 6 * move)
        left = 0.25 * left + 17 * move
    return int(PLANS[np.argmin(abs(place - goal)), 0])


def test_who_sees_the_objects_defends_well_at_pong() -> None:
    """Deterministic, four frames a step. Pressing any button loses a point every 45 steps or so, some 20 in this game."""
    env = AtariGame("pong", AtariConfig(obs="objects", sticky=0.0))
    labels = env.get_action_meanings()
    buttons = {0: labels.index("NOOP"), -1: labels.index("RIGHT"), 1: labels.index("LEFT")}
    seen, _ = env.reset(seed=0)
    lost = hits = move = 0
    for _ in range(1000):
        before = seen
        move = defend(seen.tolist(), move)
        seen, reward, *_ = env.step(buttons[move])
        lost += reward < 0
        hits += before[2] >= 0 > seen[2] and before[0] > 120
    assert lost <= 4
    assert hits >= 10
