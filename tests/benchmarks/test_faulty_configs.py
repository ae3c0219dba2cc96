"""The generator of mis-configured runs: every case is a valid config with one fault, and the two parts share nothing."""

from __future__ import annotations

from itertools import islice

import faulty_configs
import pytest

from gymnast.config.load import resolve
from gymnast.metrics.diagnosis.causes import CAUSES


@pytest.mark.parametrize("kind", faulty_configs.KINDS.values(), ids=lambda kind: kind.id)
def test_every_kind_applies_somewhere_and_gives_valid_configs(kind: faulty_configs.Kind) -> None:
    cases = [
        case
        for preset in faulty_configs.PRESETS
        for size in kind.sizes
        if (case := faulty_configs.case(preset, kind.id, size, 0)) is not None
    ]
    assert len(cases) >= 2
    for case in cases:
        config = resolve(case.preset, case.overrides).config
        assert config != faulty_configs.preset(case.preset), case.name
        assert faulty_configs.parse(case.name) == case
    assert set(kind.causes) <= {cause.id for cause in CAUSES}


def test_parts_are_drawn_by_seed_and_share_neither_seeds_nor_cases() -> None:
    build, held = (list(islice(faulty_configs.faulty(part), 60)) for part in faulty_configs.PARTS)
    assert (
        build
        == list(islice(faulty_configs.faulty("build"), 60))
        != list(islice(faulty_configs.faulty("build", seed=1), 60))
    )
    assert {case.seed for case in build}.isdisjoint({case.seed for case in held})
    assert len({case.name for case in [*build, *held]}) == 120
    unseen = {kind.id for kind in faulty_configs.HELD}
    assert not any(case.kind in unseen for case in build)
    assert sum(case.kind in unseen for case in held) >= 60 / 3


def test_healthy_cases_are_the_presets_as_they_are() -> None:
    cases = list(islice(faulty_configs.healthy("held"), 2 * len(faulty_configs.PRESETS)))
    assert {case.preset for case in cases} == set(faulty_configs.PRESETS) and not any(case.overrides for case in cases)
    assert faulty_configs.parse(cases[0].name) == cases[0]


def test_the_cost_of_a_fault_is_a_share_of_what_there_was_to_gain() -> None:
    assert [faulty_configs.costs(score, 500, 20) for score in (500, 380, 20)] == [0, 0.25, 1]
