"""What very many envs take: the estimate next to what is really allocated."""

from __future__ import annotations

import pytest

from gymnast.config.load import resolve
from gymnast.envs.demand import demand_of


def test_usual_runs_are_not_looked_at() -> None:
    assert demand_of(resolve("CartPole-v1:ppo").config) is None


@pytest.mark.parametrize(("reference", "n_envs"), [("CartPole-v1:ppo", 50_000), ("FrozenLake-v1:ppo", 20_000)])
def test_rollouts_are_as_large_as_said(reference: str, n_envs: int) -> None:
    """Against the rollout that training makes of a fiftieth of the envs."""
    from gymnast.training.build import make_trainer

    demand = demand_of(resolve(reference, [f"n_envs={n_envs}"]).config)
    assert demand is not None and demand.sentences()[0].startswith(f"{n_envs:,} envs")
    trainer = make_trainer(resolve(reference, [f"n_envs={n_envs // 50}"]).config)
    try:
        names = [field.name for field in trainer.policy.fields()]
        tensors = [trainer.rollout[name] for name in names]
        arrays = trainer.rollout.host_obs()
        assert not isinstance(arrays, dict)
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors) + arrays.nbytes
    finally:
        trainer.close()
    assert 0.5 < demand.rollout / (2 * 50 * size) < 2


def test_single_envs_have_a_size() -> None:
    demand = demand_of(resolve("FrozenLake-v1:ppo", ["n_envs=20000", "vectorization=inprocess"]).config)
    assert demand is not None and demand.envs > 20_000 * 1_000 and demand.seconds > 0
