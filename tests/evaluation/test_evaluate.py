"""Evaluation: unbiased, repeatable, honest about its protocol, and without effect on the policy (RUN-4)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import small_envs  # noqa: F401 - registers the envs
import torch

from gymnast.config.load import Resolved, validate
from gymnast.config.schema import EnvConfig, PolicyConfig
from gymnast.envs.inprocess import InProcessVector
from gymnast.envs.make import make_envs
from gymnast.envs.vector import EndedEpisode, StepRow
from gymnast.errors import ConfigError, EnvError
from gymnast.evaluation import evaluate as module
from gymnast.evaluation.evaluate import Evaluation, evaluate, exact
from gymnast.evaluation.exact import tabular_model
from gymnast.evaluation.quota import quotas
from gymnast.policies.actor_critic import ActorCritic
from gymnast.seeding import env_seeds
from gymnast.training.evaluating.setup import eval_env_config
from gymnast.training.train import train

LENGTHS = (10, 500)


class Logged(InProcessVector):
    """Remembers every episode that ended, by slot."""

    def __init__(self, env_id: str, n_envs: int) -> None:
        super().__init__(lambda: gym.make(env_id), n_envs)
        self.episodes: dict[int, list[float]] = defaultdict(list)

    def step(self, actions: np.ndarray, row: StepRow) -> Sequence[EndedEpisode]:
        """Step and remember."""
        ended = super().step(actions, row)
        for episode in ended:
            self.episodes[episode.index].append(episode.ret)
        return ended


def policy_for(envs: Any, *, spread: float = 1.0, **settings: Any) -> ActorCritic:
    """A random policy; `spread` makes it more decided than a fresh one."""
    policy = ActorCritic(PolicyConfig(hidden=[16], **settings), envs.observation_space, envs.action_space)
    with torch.no_grad():
        policy.actor.layers[-1].weight.mul_(100.0 * spread)
    return policy


def test_short_episodes_are_not_favoured() -> None:
    """Lengths and returns 10 or 500 on 32 slots, 20 episodes: 255 on average, where the first to finish give 13."""
    envs = Logged("ShortOrLong-v0", 32)
    policy = policy_for(envs)
    repetitions = 30
    means = [evaluate(policy, envs, 20, env_seeds(turn, "eval_envs", 32)).mean for turn in range(repetitions)]
    error = np.std(LENGTHS) / math.sqrt(20 * repetitions)
    assert np.mean(means) == pytest.approx(255, abs=4 * error)
    assert min(means) > 30
    # The same slots read the naive way: this env does punish it.
    naive = evaluate_first_finished(policy, envs, 20)
    assert naive < 30


def evaluate_first_finished(policy: ActorCritic, envs: InProcessVector, episodes: int) -> float:
    """The mistake: the first `episodes` to finish, from whichever slot."""
    row, returns = envs.new_row(), []
    envs.reset(env_seeds(0, "eval_envs", envs.n_envs), row)
    while len(returns) < episodes:
        returns += [episode.ret for episode in envs.step(np.zeros(envs.n_envs, np.int64), row)]
    return float(np.mean(returns[:episodes]))


@pytest.mark.parametrize(("episodes", "n_envs"), [(20, 32), (100, 8), (7, 3), (5, 5), (1, 4)])
def test_each_slot_plays_its_quota(episodes: int, n_envs: int) -> None:
    """The counted episodes are the first ones of every slot, as many as were fixed beforehand."""
    shares = quotas(episodes, n_envs)
    assert shares.sum() == episodes
    assert shares.max() - shares.min() <= 1
    envs = Logged("ShortOrLong-v0", n_envs)
    result = evaluate(policy_for(envs), envs, episodes, env_seeds(3, "eval_envs", n_envs))
    counted = [ret for slot, share in enumerate(shares) for ret in envs.episodes[slot][:share]]
    assert sorted(result.returns) == sorted(counted)
    assert result.lengths == [int(ret) for ret in result.returns]
    assert [len(envs.episodes[slot]) for slot in range(n_envs)] == shares.tolist()  # and rests after that


def test_rest_changes_no_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether slots rest or play on, in this process or in others."""
    made = [make_envs(EnvConfig(id="CartPole-v1", vectorization=kind), 5) for kind in ("inprocess", "workers")]
    policy = policy_for(made[0])
    for sampled in (False, True):
        results = [evaluate(policy, envs, 12, env_seeds(0, "eval_envs", 5), deterministic=not sampled) for envs in made]
        with monkeypatch.context() as patch:
            patch.setattr(InProcessVector, "rest", lambda self, index: None)
            results.append(evaluate(policy, made[0], 12, env_seeds(0, "eval_envs", 5), deterministic=not sampled))
        assert len({tuple(result.returns) for result in results}) == 1
        assert len(set(results[0].returns)) > 4
    for envs in made:
        row = envs.new_row()
        envs.reset(list(range(5)), row)
        before = row.obs.copy()
        envs.rest(1)
        envs.step(np.zeros(5, np.int64), row)
        assert [i for i in range(5) if (row.obs[i] == before[i]).all()] == [1]
        envs.close()


def test_same_seeds_same_episodes_fresh_seeds_fresh_ones() -> None:
    """The seeds alone decide."""
    envs = make_envs(EnvConfig(id="Pendulum-v1", time_limit=20), 4)
    policy = policy_for(envs)
    first, again, fresh = (evaluate(policy, envs, 6, env_seeds(0, "eval_envs", 4, turn=turn)) for turn in (0, 0, 1))
    assert first.returns == again.returns
    assert not set(first.returns) & set(fresh.returns)
    envs.close()


def test_deterministic_and_sampled_differ_and_say_so() -> None:
    """The greedy policy repeats itself whatever the generator; the sampled one follows the generator."""
    envs = make_envs(EnvConfig(id="Walk-v0", kwargs={"actions": "discrete"}), 3)
    policy, seeds = policy_for(envs, spread=0.2), [1, 2, 3]

    def play(deterministic: bool, seed: int) -> Evaluation:
        generator = torch.Generator().manual_seed(seed)
        return evaluate(policy, envs, 6, seeds, deterministic=deterministic, generator=generator)

    assert play(True, 0).returns == play(True, 1).returns
    assert play(False, 0).returns == play(False, 0).returns
    assert play(False, 0).returns != play(False, 1).returns
    assert play(True, 0).returns != play(False, 0).returns
    assert play(True, 0).sentence().endswith("over 6 episodes, deterministic")
    assert play(False, 0).sentence().endswith("over 6 episodes, sampled")
    assert [play(how, 0).as_json()["deterministic"] for how in (True, False)] == [True, False]


def test_nothing_about_the_policy_changes() -> None:
    """Weights and the normaliser's statistics are frozen, and the statistics are used."""
    envs = make_envs(EnvConfig(id="Pendulum-v1", time_limit=20), 5)
    policy = policy_for(envs, spread=0.1, normalize_obs=True)
    assert policy.encoder.norm is not None
    policy.encoder.norm.update(torch.randn(100, 3, generator=torch.Generator().manual_seed(0)) * 3 + 1)
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    with_statistics = evaluate(policy, envs, 10, [1, 2, 3, 4, 5])
    after = policy.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    policy.encoder.norm.update(torch.randn(10_000, 3) + 5)
    assert evaluate(policy, envs, 10, [1, 2, 3, 4, 5]).returns != with_statistics.returns
    envs.close()


def test_success_rate() -> None:
    """The share of episodes the env calls a success; unknown where it says nothing."""
    envs = Logged("ShortOrLong-v0", 4)
    result = evaluate(policy_for(envs), envs, 12, [1, 2, 3, 4])
    expected = sum(ret == 500 for ret in result.returns) / 12
    assert 0 < expected < 1
    assert result.metrics()["eval/success_rate"] == expected
    assert result.as_json()["success_rate"] == expected
    silent = Logged("Walk-v0", 2)
    assert evaluate(policy_for(silent), silent, 2, [1, 2]).metrics()["eval/success_rate"] is None


def test_statistics() -> None:
    """Mean, spread, range and the sentence of known returns."""
    result = Evaluation([1.0, 2.0, 6.0], [10, 10, 20], [], True)
    metrics = result.metrics()
    assert (result.mean, metrics["eval/return_min"], metrics["eval/return_max"]) == (3.0, 1.0, 6.0)
    assert result.std == pytest.approx(math.sqrt(14 / 3))
    assert metrics["eval/length_mean"] == pytest.approx(40 / 3)
    assert metrics["eval/reward_per_step"] == pytest.approx(9 / 40)
    equal = Evaluation([0.91] * 100, [5] * 100, [], True)
    assert equal.std == 0.0 and equal.sentence().startswith("0.91 ± 0.0 over 100 episodes")
    assert Evaluation([500.0] * 100, [500] * 100, [], True).sentence() == "500.0 ± 0.0 over 100 episodes, deterministic"


def test_progress_counts_episodes() -> None:
    """One call per counted episode."""
    envs, seen = Logged("Walk-v0", 3), []
    evaluate(policy_for(envs), envs, 7, [1, 2, 3], on_episode=seen.append)
    assert seen == list(range(1, 8))


@pytest.mark.parametrize(
    ("env", "episodes"),
    [
        ({"id": "FrozenLake-v1"}, 3000),
        ({"id": "FrozenLake-v1", "kwargs": {"is_slippery": False}}, 1000),
        ({"id": "CliffWalking-v1", "time_limit": 40, "kwargs": {"is_slippery": True}}, 600),
        ({"id": "Taxi-v4", "time_limit": 60}, 600),
        ({"id": "Taxi-v4", "time_limit": 60, "action_mask": "off"}, 600),
        ({"id": "Blackjack-v1"}, 2000),
        ({"id": "Blackjack-v1", "kwargs": {"sab": False, "natural": True}}, 2000),
    ],
    ids=[
        *("FrozenLake", "FrozenLake not slippery", "CliffWalking slippery", "Taxi with masks", "Taxi without masks"),
        *("Blackjack", "natural Blackjack"),
    ],
)
@pytest.mark.parametrize("deterministic", [True, False])
def test_exact_return_is_what_a_long_simulation_finds(env: dict[str, Any], episodes: int, deterministic: bool) -> None:
    """Within four standard errors, for greedy and sampled policies, with the masks the policy acts under."""
    config = EnvConfig.model_validate(env)
    one = gym.make(config.id, max_episode_steps=config.time_limit, **config.kwargs)
    model = tabular_model(one)
    assert model is not None
    envs = make_envs(config, 20)
    policy = policy_for(envs, spread=0.5)
    seeds = env_seeds(5, "eval_envs", 20)
    result = evaluate(policy, envs, episodes, seeds, deterministic=deterministic, tabular=model)
    error = max(result.std / math.sqrt(episodes), 1e-6)
    assert result.exact == pytest.approx(result.mean, abs=4 * error)
    assert "exact expectation" in result.sentence()
    if envs.has_action_mask:
        unmasked = exact(policy, model, deterministic=deterministic)
        assert abs(unmasked - result.mean) > 10 * error, "this policy does not show the difference a mask makes"
    envs.close()


def test_no_exact_return_under_a_mask_the_table_does_not_know() -> None:
    """An expectation of another policy than the one that plays would be worse than none."""
    envs = make_envs(EnvConfig(id="Taxi-v4", time_limit=10), 2)
    model = tabular_model(gym.make("Taxi-v4"))
    assert model is not None
    unknown = type(model)(model.P, model.initial_distribution, model.horizon)
    assert evaluate(policy_for(envs), envs, 2, [1, 2], tabular=unknown).exact is None
    envs.close()


def test_an_episode_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence that names the setting; many episodes that do end are none."""
    monkeypatch.setattr(module, "MAX_EPISODE_STEPS", 600)
    envs = make_envs(EnvConfig(id="CliffWalking-v1"), 2)
    policy = policy_for(envs)
    with torch.no_grad():
        policy.actor.layers[-1].bias.copy_(torch.tensor([1e6, 0.0, 0.0, 0.0]))  # always up
    with pytest.raises(EnvError, match=r"env\.time_limit"):
        evaluate(policy, envs, 2, [1, 2])
    short = Logged("ShortOrLong-v0", 2)
    assert len(evaluate(policy_for(short), short, 20, [1, 2]).returns) == 20


# ---- what the evaluation envs have other than the training envs ----------------------------------------------------


def config(evaluation: dict[str, Any], env_steps: int = 64) -> Resolved:
    """A few steps of CartPole."""
    data = {
        "env": {"id": "CartPole-v1", "n_envs": 2},
        "algo": {"id": "ppo", "n_steps": 16, "batch_size": 16, "n_epochs": 1},
        "train": {"env_steps": env_steps},
        "eval": {"episodes": 4, **evaluation},
    }
    return Resolved(validate(data, {}))


def test_eval_env_overrides_are_recorded_as_differences(tmp_path: Path) -> None:
    """Only what really differs, in the result and for other programs."""
    overrides = {"env": {"time_limit": 7, "n_envs": 2}}
    env, changed = eval_env_config(config(overrides).config)
    assert env.time_limit == 7
    assert changed == {"time_limit": 7}
    result = train(config(overrides), tmp_path)
    assert result is not None
    assert result.evaluation is not None
    assert result.evaluation.lengths == [7] * 4
    assert result.evaluation.as_json()["differences"] == {"time_limit": 7}
    plain = train(config({}), tmp_path)
    assert plain is not None
    assert plain.evaluation is not None
    assert plain.evaluation.differences == {}
    assert max(plain.evaluation.lengths) > 7


def test_unknown_eval_env_key_is_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    with pytest.raises(ConfigError, match=r"eval\.env\.time_limits"):
        train(config({"env": {"time_limits": 7}}), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_protocol_of_the_config_is_followed(tmp_path: Path) -> None:
    """Number of episodes and way of acting come from the eval section."""
    result = train(config({"episodes": 9, "deterministic": False, "n_envs": 2}), tmp_path)
    assert result is not None
    assert result.evaluation is not None
    assert len(result.evaluation.returns) == 9
    assert not result.evaluation.deterministic
