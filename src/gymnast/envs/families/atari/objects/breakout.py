"""Breakout: the ball, the paddle, the lives and all 108 bricks.

What the bytes mean was found by comparing them with the objects' pixels frame by frame. The ball's position differs from the
picture by 2.5 pixels at most (it is drawn late on some lines), the paddle's and the bricks' not at all.

- The ball is `visible` while it is in play and above the lower edge of the picture. It takes the colour of the bricks and walls
  it flies over: there it counts as visible though no pixel tells. A ball below the edge is lost and counts as missing.
- The paddle is 16 pixels wide, and 12 once the ball has reached the ceiling. It may stick into the right wall: its centre is
  that of the whole paddle.
- Bricks are listed row by row from the top, each row from the left: 1 stands, 0 is gone.
"""

from __future__ import annotations

import numpy as np

from gymnast.config.spec import Component
from gymnast.envs.families.atari.objects import (
    HEIGHT,
    WIDTH,
    ObjectMap,
    ObjectState,
    flag,
    horizontal,
    speed,
    vertical,
)

BALL_X, BALL_Y, PADDLE_X, HALF_WIDTH, LIVES = 99, 101, 72, 108, 57
"""Bytes of the memory."""
BALL_LOST = 186
"""From this value of its byte on the ball is below the picture."""
ROWS, COLUMNS, BRICK_BYTES = 6, 18, 36
OTHERS = 9
"""Values before the bricks."""


def _brick_bits() -> np.ndarray:
    """Where the 108 bricks are among the bits of the first 36 bytes, counted as `np.unpackbits` lists them.

    A row of bricks is six playfield registers of the console, one byte each and six bytes apart; the top row comes last. A brick
    is two neighbouring bits, which are always equal. In each half of the picture the middle register is drawn from its highest
    bit on, the two others from their lowest.
    """
    columns = [(30, 0)]
    columns += [(24, bit) for bit in (0, 2, 4, 6)]
    columns += [(18, bit) for bit in (6, 4, 2, 0)]
    columns += [(12, bit) for bit in (2, 0)]
    columns += [(6, bit) for bit in (0, 2, 4, 6)]
    columns += [(0, bit) for bit in (6, 4, 2)]
    return np.array([8 * (byte + ROWS - 1 - row) + bit for row in range(ROWS) for byte, bit in columns])


BRICK_BITS = _brick_bits()


def read(ram: np.ndarray, previous: ObjectState | None) -> tuple[np.ndarray, ObjectState]:
    """Ball, paddle, lives, bricks."""
    ball_x = ball_y = 0.0
    visible = 0 < ram.item(BALL_Y) < BALL_LOST
    if visible:
        ball_x, ball_y = ram.item(BALL_X) - 48.5, ram.item(BALL_Y) + 10.5
    half_width = ram.item(HALF_WIDTH)
    paddle_x = ram.item(PADDLE_X) - 47.5 + half_width

    ball_dx = ball_dy = paddle_dx = 0.0
    if previous is not None:
        old_ball_x, old_ball_y, old_paddle_x = previous
        paddle_dx = paddle_x - old_paddle_x
        if visible and old_ball_x:
            ball_dx, ball_dy = ball_x - old_ball_x, ball_y - old_ball_y
    values = np.empty(OTHERS + ROWS * COLUMNS, np.float32)
    values[:OTHERS] = (ball_x, ball_y, ball_dx, ball_dy, visible, paddle_x, paddle_dx, 2 * half_width, ram.item(LIVES))
    values[OTHERS:] = np.unpackbits(ram[:BRICK_BYTES])[BRICK_BITS]
    return values, (ball_x, ball_y, paddle_x)


MAP = ObjectMap(
    components=(
        horizontal("ball x"),
        vertical("ball y"),
        speed("ball dx", WIDTH),
        speed("ball dy", HEIGHT),
        flag("ball visible"),
        horizontal("paddle x"),
        speed("paddle dx", WIDTH),
        Component(name="paddle width", low=0, high=16, unit="px"),
        Component(name="lives", low=0, high=5),
        *(flag(f"brick row {row + 1} column {column + 1}") for row in range(ROWS) for column in range(COLUMNS)),
    ),
    read=read,
)
