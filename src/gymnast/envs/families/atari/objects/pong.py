"""Pong: the ball and both paddles. The player's paddle is the right one.

What the bytes mean was found by comparing them with the objects' pixels frame by frame. Positions differ from the picture by
2 pixels at most, because the game draws the player's paddle on even lines only and the ball late on some lines.

- A paddle may stick into a wall: its centre is that of the whole paddle, not of the part that is seen. It is that of a full
  paddle (16 pixels); difficulties with short ones put it 4 pixels too low.
- The ball is `visible` as long as it is in play. At a bounce it may be behind the upper wall for a frame.
- The enemy's paddle leaves the screen between points and is put next to the ball at the serve: a jump, so its velocity is 0
  then. The player's paddle is always there.
- How far the ball is below the player's centre is in the observation by itself: where on the paddle the ball is hit decides
  its angle, and a difference of pixels between two values of 200 is hard to see.
"""

from __future__ import annotations

import numpy as np

from gymnast.envs.families.atari.objects import (
    HEIGHT,
    WIDTH,
    ObjectMap,
    ObjectState,
    flag,
    horizontal,
    offset,
    speed,
    vertical,
)

BALL_X, BALL_Y, ENEMY_Y, PLAYER_Y = 49, 54, 50, 51
"""Bytes of the memory."""
FIELD_TOP = 34
"""The first line below the upper wall; the enemy's byte is the lowest line of its paddle."""


def read(ram: np.ndarray, previous: ObjectState | None) -> tuple[np.ndarray, ObjectState]:
    """Ball, player's paddle, enemy's paddle."""
    ball_x = ball_y = enemy_y = 0.0
    in_play = ram.item(BALL_Y) > 0 and ram.item(BALL_X) > 0  # one is 0 between points, the other before the first
    if in_play:
        ball_x, ball_y = ram.item(BALL_X) - 48.5, ram.item(BALL_Y) - 12.5
    enemy = ram.item(ENEMY_Y) >= FIELD_TOP
    if enemy:
        enemy_y = ram.item(ENEMY_Y) - 7.5
    player_y = ram.item(PLAYER_Y) - 6.0

    ball_dx = ball_dy = player_dy = enemy_dy = 0.0
    if previous is not None:
        old_ball_x, old_ball_y, old_player_y, old_enemy_y = previous
        player_dy = player_y - old_player_y
        served = in_play and not old_ball_x
        if in_play and not served:
            ball_dx, ball_dy = ball_x - old_ball_x, ball_y - old_ball_y
        if enemy and old_enemy_y and not served:
            enemy_dy = enemy_y - old_enemy_y
    ball = (ball_x, ball_y, ball_dx, ball_dy, in_play, ball_y - player_y if in_play else 0.0)
    values = (*ball, player_y, player_dy, enemy_y, enemy_dy, enemy)
    return np.array(values, np.float32), (ball_x, ball_y, player_y, enemy_y)


MAP = ObjectMap(
    components=(
        horizontal("ball x"),
        vertical("ball y"),
        speed("ball dx", WIDTH),
        speed("ball dy", HEIGHT),
        flag("ball visible"),
        offset("ball below player", HEIGHT),
        vertical("player y"),
        speed("player dy", HEIGHT),
        vertical("enemy y"),
        speed("enemy dy", HEIGHT),
        flag("enemy visible"),
    ),
    read=read,
)
