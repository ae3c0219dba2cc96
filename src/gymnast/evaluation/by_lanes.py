"""Evaluation of envs that are stepped lane by lane: no lane waits for another, and who has played all episodes rests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from gymnast.envs.lanes import LanePool
from gymnast.envs.vector import EndedEpisode, some_rows
from gymnast.evaluation.quota import Quota
from gymnast.policies.base import Policy
from gymnast.rollout.acting import EvaluatingActor


def play_episodes(
    policy: Policy,
    envs: LanePool,
    quota: Quota,
    seeds: Sequence[int],
    *,
    deterministic: bool,
    most_steps: int,
    on_episode: Callable[[EndedEpisode], None],
) -> bool:
    """Play the quota of every slot; `on_episode` is called after each. False when an episode does not end within `most_steps`."""
    row = envs.new_row()
    device = next(policy.parameters()).device
    actor = EvaluatingActor(policy, row, envs.lanes, device, None if deterministic else seeds)
    rows = [some_rows(row, slots) for slots in envs.lanes]
    since = np.zeros(len(envs.lanes), np.int64)  # steps of each lane since one of its episodes ended
    playing = 0

    def act() -> int:
        sent = 0
        for place, actions in actor.act() if actor.placed else ():
            envs.send_lane(place.lane, actions)
            sent += 1
        return sent

    with torch.inference_mode():
        envs.reset(seeds, row)
        for lane, slots in enumerate(envs.lanes):
            if quota.open[slots].any():
                actor.place(lane).copy_from(row)
                playing += act() if actor.full else 0
        playing += act()
        while playing:
            envs.even_out()
            for lane in envs.ready_lanes():
                playing -= 1
                slots, place = envs.lanes[lane], actor.place(lane)
                rows[lane].obs, rows[lane].mask = place.obs, place.mask
                ended = envs.recv_lane(lane, rows[lane])
                since[lane] = 0 if ended else since[lane] + 1
                for episode in ended:
                    if quota.take(episode.index, episode.length):
                        if quota.rests(episode.index):
                            envs.rest(episode.index)
                        on_episode(episode)
                if since[lane] > most_steps:
                    return False
                if not quota.open[slots].any():
                    actor.placed.pop()  # it rests
                playing += act() if actor.full else 0
            playing += act()
    return True
