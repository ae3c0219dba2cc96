"""Every logged metric is what the catalogue says: all of them computed again, from the env's own diary and by plain PyTorch."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import diary_env  # registers the env
import gymnasium as gym
import numpy as np
import pytest
import torch
from runs_alike import run
from torch.distributions import Categorical, Independent, Normal

from gymnast import api, seeding
from gymnast.config.load import Resolved, validate
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.sinks.jsonl import NOT_METRICS, MetricRows
from gymnast.policies.actor_critic import ActorCritic
from gymnast.timing import StageTimer
from gymnast.training.build import build
from gymnast.training.keeping.rows import RowMaker
from gymnast.training.on_policy import OnPolicyTrainer
from gymnast.training.trainer import Row, policy_tensors

N_ENVS, N_STEPS, WINDOW, BUDGET = 3, 16, 5, 400
SCALE, OFFSET, LOW, HIGH = 0.25, 0.125, -0.5, 1.5
WRAPPERS = [
    {"id": "reward_scale", "factor": SCALE, "offset": OFFSET},
    {"id": "reward_clip", "low": LOW, "high": HIGH},
]
PPO = {"id": "ppo", "n_steps": N_STEPS, "batch_size": 20, "learning_rate": "lin_1e-2", "ent_coef": 0.02}
VARIANTS: dict[str, dict[str, Any]] = {
    "ppo": PPO | {"n_epochs": 2.6, "clip_range": "lin_0.05", "clip_range_vf": 0.1, "normalize_reward": True},
    "ppo, stopped": PPO | {"n_epochs": 9, "target_kl": 1e-3, "normalize_advantage": "rollout", "value_loss": "huber"},
    "ppo, box": PPO | {"n_epochs": 2, "normalize_advantage": "off", "max_grad_norm": None},
    "a2c": {
        "id": "a2c",
        "n_steps": N_STEPS,
        "normalize_advantage": "batch",
        "ent_coef": 0.1,
        "optimizer": {"id": "adam"},
    },
    "reinforce, none": {"id": "reinforce", "baseline": "none", "normalize_reward": True},
    "reinforce, mean": {"id": "reinforce", "baseline": "mean", "normalize_advantage": "off"},
    "reinforce, learned": {"id": "reinforce", "baseline": "learned"},
}
SETTINGS = (
    "learning_rate", "clip_range", "clip_range_vf", "ent_coef", "vf_coef", "gamma", "gae_lambda", "max_grad_norm", "target_kl",
)  # fmt: skip
NAMES = {metric.name for metric in load_catalogue()}
ELSEWHERE = {
    "env/worker_restarts",  # tests/envs/test_workers.py kills workers and counts them
    "train/stage",  # test_stages.py
    "train/value_scale",  # test_value_scale_runs.py
    *("rollout/intrinsic_reward", "train/rnd_loss", "train/rnd_value_loss"),  # tests/algorithms/test_rnd.py
}

FAMILIES_ELSEWHERE = {
    *("rollout/reward_terms/", "eval/return_by/"),  # test_terms_and_parameters.py
    *(f"rollout/{name}/" for name in ("return_mean", "length_mean", "episodes", "success_rate")),  # test_tasks.py
}


def config(algo: dict[str, Any], env_id: str = "Diary-v0", **sections: Any) -> Resolved:
    """A few iterations on the diary, with rewards that wrappers change."""
    data: dict[str, Any] = {
        "name": "test",
        "env": {"id": env_id, "n_envs": N_ENVS, "vectorization": "inprocess", "wrappers": WRAPPERS},
        "policy": {"hidden": [8]},
        "algo": algo,
        "train": {"env_steps": BUDGET, "stop_when_solved": False},
        "log": {"window": WINDOW, "diagnostics_every": 1},
    }
    for name, section in sections.items():
        data[name] = {**data.get(name, {}), **section}
    return Resolved(validate(data, {}))


def diaries(trainer: OnPolicyTrainer) -> list[diary_env.Diary]:
    """The bare envs, slot by slot."""
    envs: Any = trainer.envs
    while hasattr(envs, "inner"):
        envs = envs.inner
    return [env.unwrapped for env in envs.envs]


class Again:
    """Trains the same in plain PyTorch, from what the envs wrote down, and says what each metric must be."""

    def __init__(self, trainer: OnPolicyTrainer) -> None:
        self.trainer, self.algo, self.config = trainer, dict(trainer.config.algo), trainer.config
        self.policy = self._copy()
        self.adam = torch.optim.Adam(self.policy.parameters(), lr=1.0, eps=self.config.algo.optimizer.eps)
        self.sums = np.zeros(N_ENVS)
        self.all_sums: list[float] = []
        self.updates = self.epochs = self.steps = self.iterations = self.kl_stops = 0
        self.ended: list[diary_env.Episode] = []

    def _copy(self) -> ActorCritic:
        trainer = self.trainer
        spaces = trainer.envs.observation_space, trainer.envs.action_space
        policy = ActorCritic(self.config.policy, *spaces, critic=trainer.policy.has_critic)
        policy.load_state_dict({name: tensor.clone() for name, tensor in policy_tensors(trainer.policy).items()})
        return policy

    def before(self) -> None:
        """Remember what an iteration begins with."""
        self.generator = torch.Generator()
        self.generator.set_state(self.trainer.learner.generator.get_state())
        self.at = [(len(env.episodes) - 1, len(env.episodes[-1].rewards)) for env in diaries(self.trainer)]
        self.progress = self.steps / BUDGET

    def coefficient(self, name: str) -> float | None:
        """A hyperparameter at the beginning of the iteration."""
        value = self.algo.get(name)
        return value.start * (1.0 - self.progress) if hasattr(value, "start") else value

    # ---- what happened -----------------------------------------------------------------------------------------------

    def read(self, length: int) -> None:
        """The iteration's steps from the diaries, [T, N]."""
        shape = (length, N_ENVS)
        self.own = np.zeros(shape)
        self.terminated, self.truncated = np.zeros(shape, bool), np.zeros(shape, bool)
        self.obs, self.next_obs = np.zeros((*shape, 3), np.float32), np.zeros((*shape, 3), np.float32)
        ended = []
        for i, env in enumerate(diaries(self.trainer)):
            number, step = self.at[i]
            for t in range(length):
                page = env.episodes[number]
                self.own[t, i] = page.rewards[step]
                self.obs[t, i], self.next_obs[t, i] = page.observations[step : step + 2]
                step += 1
                if page.ended and step == len(page.rewards):
                    self.terminated[t, i] = page.terminated
                    self.truncated[t, i] = step == diary_env.LIMIT
                    ended.append((t, i, page))
                    number, step = number + 1, 0
        self.ended += [page for _, _, page in sorted(ended, key=lambda found: found[:2])]
        self.changed = np.clip(self.own * SCALE + OFFSET, LOW, HIGH)
        self.action = self.trainer.rollout["action"][:length].clone()

    def scaled(self) -> np.ndarray:
        """Rewards as the learner sees them."""
        if not self.algo["normalize_reward"]:
            return self.changed
        if self.algo["id"] == "reinforce":
            self.sums[:] = 0.0  # whole episodes: each iteration begins new ones
        for t in range(len(self.changed)):
            self.sums = self.sums * self.algo["gamma"] + self.changed[t]
            self.all_sums += self.sums.tolist()
            self.sums *= ~(self.terminated[t] | self.truncated[t])
        self.std = math.sqrt(np.var(self.all_sums) + 1e-8)
        return np.clip(self.changed / self.std, -self.algo["reward_clip"], self.algo["reward_clip"])

    def targets(self) -> None:
        """Advantages and targets by the definition, one episode piece after the other."""
        reward, gamma = self.scaled(), self.algo["gamma"]
        with torch.no_grad():
            self.value = self._values(self.obs)
            after = self._values(self.next_obs)
        whole = self.algo["id"] == "reinforce"
        lam = 1.0 if whole else self.algo["gae_lambda"]
        self.advantage = np.zeros(reward.shape)
        self.valid = np.ones(reward.shape, bool)
        for i in range(N_ENVS):
            later = 0.0
            for t in reversed(range(len(reward))):
                cut = self.terminated[t, i] or self.truncated[t, i]
                bootstrap = 0.0 if whole or self.terminated[t, i] else gamma * after[t, i]
                baseline = 0.0 if whole else self.value[t, i]
                # Inside an episode a Monte-Carlo return takes no value of the next state.
                later = reward[t, i] + bootstrap - baseline + (0.0 if cut else gamma * lam * later)
                self.advantage[t, i] = later
            if whole:
                self.valid[np.flatnonzero(self.terminated[:, i] | self.truncated[:, i])[0] + 1 :, i] = False
        self.target = self.advantage + (0.0 if whole else self.value)
        if self.algo.get("baseline") == "learned":
            self.advantage -= self.value
        elif self.algo.get("baseline") == "mean":
            self.advantage -= self.advantage[self.valid].mean()

    def _values(self, obs: np.ndarray) -> np.ndarray:
        """What the critic expects of observations [T, N, …]; nothing where there is none."""
        heads = self.policy(torch.from_numpy(obs).flatten(0, 1))[1]
        if not self.policy.has_critic:
            assert "value" not in heads
            return np.zeros(obs.shape[:2])
        return heads["value"].detach().view(obs.shape[:2]).double().numpy()

    # ---- learning ------------------------------------------------------------------------------------------------------

    def distribution(self, params: torch.Tensor) -> Any:
        """As PyTorch has it."""
        if self.policy.log_std is None:
            return Categorical(logits=params)
        mean, log_std = params.chunk(2, -1)
        return Independent(Normal(mean, log_std.exp()), 1)

    def learn(self) -> dict[str, float]:
        """The update by autograd; means over its minibatches."""
        obs = torch.from_numpy(self.obs[self.valid])
        action = self.action[torch.from_numpy(self.valid)]
        advantage, target, old_value = (
            torch.from_numpy(a[self.valid]).float() for a in (self.advantage, self.target, self.value)
        )
        mode, ppo = self.algo["normalize_advantage"], self.algo["id"] == "ppo"
        if mode == "rollout" or (mode == "batch" and not ppo):
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        with torch.no_grad():
            old_log_prob = self.distribution(self.policy(obs)[0]).log_prob(action)
        n, size = len(obs), self.algo["batch_size"] if ppo else len(obs)
        found: list[dict[str, float]] = []
        with torch.no_grad():
            self.params = self.policy(obs)[0]
        self.weights_before = {name: tensor.detach().clone() for name, tensor in self.policy.named_parameters()}
        self.passes = 0
        for _ in range(round(self.algo["n_epochs"]) if ppo else 1):
            self.passes += 1
            order = torch.randperm(n, generator=self.generator) if size < n else torch.arange(n)
            epoch = [
                self._minibatch(obs[i], action[i], advantage[i], target[i], old_value[i], old_log_prob[i])
                for i in order.split(size)
            ]
            found += epoch
            if (
                self.algo.get("target_kl")
                and np.mean([one["train/approx_kl"] for one in epoch]) > self.algo["target_kl"]
            ):
                self.kl_stops += 1
                break
        self.updates += len(found)
        self.epochs += self.passes
        means = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        if not ppo:
            with torch.no_grad():
                moved = self.distribution(self.policy(obs)[0]).log_prob(action) - old_log_prob
            means["train/approx_kl"] = float((moved.exp() - 1 - moved).mean())
        means["train/entropy_loss_scaled"] = -(self.coefficient("ent_coef") or 0.0) * means["train/entropy"]
        if self.policy.has_critic:
            means["train/value_loss_scaled"] = self.coefficient("vf_coef") * means["train/value_loss"]
        return means

    def _minibatch(
        self, obs: Any, action: Any, advantage: Any, target: Any, old_value: Any, old: Any
    ) -> dict[str, float]:
        algo = self.algo
        ppo = algo["id"] == "ppo"
        if ppo and algo["normalize_advantage"] == "batch":
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        params, heads, _ = self.policy(obs)
        now = self.distribution(params)
        log_ratio = now.log_prob(action) - old
        ratio = log_ratio.exp()
        statistics: dict[str, Any] = {"train/entropy": now.entropy().mean()}
        if ppo:
            clip = self.coefficient("clip_range")
            objective = torch.min(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
            statistics["train/approx_kl"] = (ratio - 1 - log_ratio).mean()
            statistics["train/old_approx_kl"] = -log_ratio.mean()
            statistics["train/clip_fraction"] = ((ratio - 1).abs() > clip).float().mean()
        else:
            objective = now.log_prob(action) * advantage
        statistics["train/policy_loss"] = -objective.mean()
        loss = statistics["train/policy_loss"] - self.coefficient("ent_coef") * statistics["train/entropy"]
        if self.policy.has_critic:
            value = heads["value"]
            error = self._value_error(value, target)
            if algo.get("clip_range_vf"):
                near = old_value + (value - old_value).clamp(-algo["clip_range_vf"], algo["clip_range_vf"])
                error = torch.max(error, self._value_error(near, target))
            statistics["train/value_loss"] = error.mean()
            loss = loss + algo["vf_coef"] * statistics["train/value_loss"]
        statistics["train/loss"] = loss
        self.adam.zero_grad()
        loss.backward()
        self.gradients = {name: tensor.grad.clone() for name, tensor in self.policy.named_parameters()}
        parameters = [p for p in self.policy.parameters() if p.grad is not None]
        norm = torch.nn.utils.clip_grad_norm_(parameters, algo["max_grad_norm"] or math.inf)
        self.adam.param_groups[0]["lr"] = self.coefficient("learning_rate")
        self.adam.step()
        found = {name: float(tensor.detach()) for name, tensor in statistics.items()} | {"train/grad_norm": float(norm)}
        if algo["max_grad_norm"]:
            found["train/grad_clip_fraction"] = float(norm > algo["max_grad_norm"])
        return found

    def _value_error(self, value: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if self.algo.get("value_loss") == "huber":  # twice Huber's, so that it equals the squared error near zero
            return 2 * torch.nn.functional.huber_loss(value, target, reduction="none", delta=self.algo["huber_delta"])
        return (value - target) ** 2

    # ---- the row -------------------------------------------------------------------------------------------------------

    def row(self) -> dict[str, Any]:
        """What the iteration's row must say."""
        length = self.trainer.rollout.length
        self.read(length)
        self.targets()
        learned = self.learn()
        self.steps += length * N_ENVS
        self.iterations += 1
        last = self.ended[-WINDOW:]
        returns, lengths = [sum(page.rewards) for page in last], [len(page.rewards) for page in last]
        advantage, target, value = (a[self.valid] for a in (self.advantage, self.target, self.value))
        critic = self.policy.has_critic
        row = {
            "iteration": self.iterations,
            "env_steps": self.steps,
            "vec_steps": self.steps // N_ENVS,
            "frames": self.steps,
            "updates": self.updates,
            "epoch": self.epochs,
            "progress": min(1.0, self.steps / BUDGET),
            "rollout/return_mean": np.mean(returns),
            "rollout/return_std": np.std(returns),
            "rollout/return_min": min(returns),
            "rollout/return_max": max(returns),
            "rollout/length_mean": np.mean(lengths),
            "rollout/length_std": np.std(lengths),
            "rollout/reward_mean": self.own.mean(),
            "rollout/episodes": len(self.ended),
            "rollout/success_rate": np.mean([page.success for page in last]),
            "rollout/regret": np.mean([page.regret for page in last]),
            "rollout/diversity": len(self._transitions()) / self.own.size,
            **learned,
            "train/explained_variance": 1 - np.var(target - value) / np.var(target) if critic else None,
            "train/kl_stops": self.kl_stops,
            "train/advantage_mean": advantage.mean(),
            "train/advantage_std": advantage.std(),
            "train/value_mean": value.mean() if critic else None,
            "train/return_target_mean": target.mean(),
            "train/reward_mean": self.changed.mean(),
            "train/solved": 0.0,
        }
        row |= self.looked_at(advantage, target, value)
        for name in SETTINGS:
            if self.coefficient(name) is not None:
                row[f"train/{name}"] = self.coefficient(name)
        if self.algo["id"] == "ppo":
            row["train/n_epochs"] = self.passes
        if self.algo["normalize_reward"]:
            row["train/reward_scale"] = self.std
        if self.policy.log_std is not None:
            row["train/action_std"] = self._sampled_std()
        return row

    def looked_at(self, advantage: np.ndarray, target: np.ndarray, value: np.ndarray) -> dict[str, Any]:
        """What a closer look must say, of weights, gradients and samples."""
        after = {name: tensor.detach() for name, tensor in self.policy.named_parameters()}
        moved = {name: tensor - self.weights_before[name] for name, tensor in after.items()}
        row: dict[str, Any] = {"train/weight_norm": norm_of(after), "train/update_norm": norm_of(moved)}
        parts = {"policy": ("actor.", "log_std")} | ({"value": ("critic.",)} if self.policy.has_critic else {})
        for part, begins in parts.items():
            for what, tensors in (("grad", self.gradients), ("weight", after), ("update", moved)):
                row[f"train/{what}_norm/{part}"] = norm_of(
                    {name: tensor for name, tensor in tensors.items() if name.startswith(begins)}
                )
        own, obs, taken = self.own[self.valid], self.obs[self.valid], self.action[torch.from_numpy(self.valid)].numpy()
        row |= spread_of("rollout/reward", own, "std", "min", "max")
        row |= spread_of("rollout/obs", obs, "mean", "std", "min", "max")
        row |= spread_of("train/output", self.params.numpy(), "mean", "std")
        row |= spread_of("train/advantage", advantage, "min", "max") | spread_of("train/return_target", target, "std")
        row["train/output_max"] = np.abs(self.params.numpy()).max()
        if self.policy.log_std is None:
            shares = np.array([(taken == action).mean() for action in range(self.params.shape[1])])
            row |= {f"rollout/action_share/{action}": share for action, share in enumerate(shares)}
            row["rollout/action_masked"] = 0.0  # tests/metrics/alerts/test_alerts.py has an env with masks
            row["rollout/action_entropy"] = -sum(share * np.log(share) for share in shares if share)
        else:
            row |= {"rollout/action_mean": taken.mean(), "rollout/action_std": taken.std(0).mean()}
        if self.policy.has_critic:
            row |= spread_of("train/value", value, "std", "min", "max")
            if self.algo.get("clip_range_vf"):
                now = self._values(self.obs)[self.valid]
                row["train/clip_fraction_vf"] = (np.abs(now - value) > self.algo["clip_range_vf"]).mean()
        if self.config.policy.activation == "relu":
            row |= self._dead(after, torch.from_numpy(obs))
        return row

    def _dead(self, weights: dict[str, torch.Tensor], obs: torch.Tensor) -> dict[str, float]:
        """Hidden units that are zero for all samples, of the one hidden layer that actor and critic have."""
        dead = {}
        for part, module in {"policy": "actor", "value": "critic"}.items():
            weight, bias = weights[f"{module}.layers.0.weight"], weights[f"{module}.layers.0.bias"]
            dead[part] = ((obs @ weight.T + bias).clamp(min=0).sum(0) == 0).numpy()
        found = {f"train/dead_relus/{part}.0": float(units.mean()) for part, units in dead.items()}
        return found | {"train/dead_relus": float(np.concatenate(list(dead.values())).mean())}

    def _transitions(self) -> set[Any]:
        found = set()
        for t, i in np.ndindex(self.own.shape):
            over = bool(self.terminated[t, i]), bool(self.truncated[t, i])
            after = over if any(over) else self.next_obs[t, i].tobytes()
            found.add((self.obs[t, i].tobytes(), self.action[t, i].numpy().tobytes(), self.own[t, i], after))
        return found

    def _sampled_std(self) -> float:
        """Of the actions themselves."""
        obs = torch.zeros((40_000, 3))
        noise = self.trainer.policy.distribution.noise((40_000,), torch.Generator().manual_seed(0))
        with torch.inference_mode():
            return float(self.trainer.policy.act(obs, noise)["action"].std(0).mean())


def norm_of(tensors: dict[str, torch.Tensor]) -> float:
    """Of all numbers together."""
    return math.sqrt(sum(float((tensor.double() ** 2).sum()) for tensor in tensors.values()))


def spread_of(name: str, values: np.ndarray, *what: str) -> dict[str, float]:
    """`mean`, `std`, `min` and `max` of values, by name."""
    return {f"{name}_{one}": float(getattr(np.asarray(values, np.float64), one)()) for one in what}


def check(row: dict[str, Any], expected: dict[str, Any], where: str) -> None:
    """Both have the same names, and what they say is equal up to rounding."""
    assert row.keys() == expected.keys(), where
    for name, value in expected.items():
        logged = row[name]
        rough = 0.02 if name == "train/action_std" else 2e-3 if name in UPDATED else 1e-5
        near = logged == value if value is None else logged == pytest.approx(value, rel=rough, abs=2e-6)
        assert near, f"{where}: {name} is {logged}, not {value} ({load_catalogue()[name].meaning})"


UPDATED = {
    f"train/{name}"
    for name in (
        *("loss", "policy_loss", "value_loss", "value_loss_scaled", "approx_kl", "old_approx_kl", "grad_norm"),
        *("update_norm", "grad_norm/policy", "grad_norm/value", "update_norm/policy", "update_norm/value"),
    )
}
"""Sums of small numbers with both signs, after updates whose rounding differs."""
TIMES = ("time/", "sys/")


def test_every_number_of_training() -> None:
    """Three iterations of each variant; no number in a row and none in the catalogue is left unchecked."""
    compared: set[str] = set()
    for variant in VARIANTS:
        compared |= train_again(variant)
    assert all(name in load_catalogue() for name in compared)
    families = {name.rpartition("/")[0] + "/" for name in compared if name not in NAMES}
    assert families == set(load_catalogue().families) - FAMILIES_ELSEWHERE
    assert NAMES - compared - ELSEWHERE == {name for name in NAMES if name.startswith((*TIMES, "eval/"))}


def train_again(variant: str) -> set[str]:
    """Compare three iterations; returns the names."""
    compared: set[str] = set()
    activation = "relu" if variant == "a2c" else "tanh"
    policy = {"hidden": [8], "activation": activation}
    resolved = config(VARIANTS[variant], "BoxDiary-v0" if "box" in variant else "Diary-v0", policy=policy)
    trainer = build(resolved.config)
    try:
        timer = StageTimer()
        rows = RowMaker(trainer, timer, 0)
        again = Again(trainer)
        last: Row = {}
        trainer.start()
        for iteration in range(3):
            again.before()
            row = last = rows(trainer.iterate(timer), last, solved=False)
            expected = again.row()
            numbers = {name: value for name, value in row.items() if not name.startswith(TIMES)}
            check(numbers, expected, f"{variant}, iteration {iteration}")
            compared.update(numbers)
        assert again.ended
        if "stopped" in variant:
            assert again.kl_stops
    finally:
        trainer.close()
    return compared


def test_times_are_of_the_clock() -> None:
    """Shares of the wall time sum to one; rates are steps by seconds."""
    trainer = build(config(VARIANTS["a2c"]).config)
    try:
        timer = StageTimer()
        began = timer.started
        rows = RowMaker(trainer, timer, 0)
        row: Row = {}
        trainer.start()
        for _ in range(2):
            steps, seconds = row.get("env_steps") or 0, row.get("time/seconds") or 0.0
            measured = trainer.iterate(timer)
            earliest = time.perf_counter() - began
            row = rows(measured, row, solved=False)
            latest = time.perf_counter() - began
        between = lambda value, low, high: low * (1 - 1e-9) <= value <= high * (1 + 1e-9)  # noqa: E731
        assert between(row["time/seconds"], earliest, latest)
        assert between(row["time/fps"], row["env_steps"] / latest, row["env_steps"] / earliest)
        assert row["time/fps_now"] == pytest.approx((row["env_steps"] - steps) / (row["time/seconds"] - seconds))
        assert row["time/epochs_per_second"] == pytest.approx(1 / (row["time/seconds"] - seconds))  # A2C makes one pass
        left = row["time/seconds"] / row["progress"] * (1 - row["progress"])
        assert row["time/eta"] == pytest.approx(left)
        stages = [f"time/{name}" for name in ("env", "policy", "learn", "other")]
        assert sum(row[name] for name in stages) == pytest.approx(1.0)
        for name in stages[:3]:
            assert between(row[name], timer.seconds[name[5:]] / latest, timer.seconds[name[5:]] / earliest)
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
        assert row["sys/rss_mb"] == pytest.approx(resident, rel=0.1)
        stages += [f"time/{name}" for name in ("eval", "checkpoint", "video")]  # of the same timer, when they happen
        others = {"time/seconds", "time/fps", "time/fps_now", "time/eta", "time/epochs_per_second", "sys/rss_mb"}
        others.add("sys/gpu_mb")  # where there is a GPU
        assert {*stages, *others} == {name for name in NAMES if name.startswith(TIMES)}
    finally:
        trainer.close()


def test_every_number_of_an_evaluation(tmp_path: Path) -> None:
    """The episodes of the last evaluation, played again with nothing but Gymnasium and the saved weights."""
    episodes, slots = 7, 3
    settings: dict[str, Any] = {
        "eval": {"every": 96, "episodes": episodes, "n_envs": slots},
        "spec": {"solved_at": -50},
    }
    result = run(config(PPO, **settings), tmp_path)
    rows = list(MetricRows(result.run.metrics_path))
    evaluated = [row for row in rows if row["eval/return_mean"] is not None]
    agent = api.load(f"{result.run.id}/last", runs_dir=tmp_path)
    seeds = seeding.env_seeds(0, "eval_envs", slots, turn=len(evaluated) - 1)
    played: list[diary_env.Episode] = []
    for slot, seed in enumerate(seeds):
        env = gym.make("Diary-v0")
        for number in range(episodes // slots + (slot < episodes % slots)):
            obs, _ = env.reset(seed=seed if number == 0 else None)
            over = False
            while not over:
                obs, _, terminated, truncated, _ = env.step(agent.predict(obs))
                over = terminated or truncated
        played += env.unwrapped.episodes  # type: ignore[attr-defined]
    returns, lengths = [sum(page.rewards) for page in played], [len(page.rewards) for page in played]
    expected = {
        "eval/return_mean": np.mean(returns),
        "eval/return_std": np.std(returns),
        "eval/return_min": min(returns),
        "eval/return_max": max(returns),
        "eval/length_mean": np.mean(lengths),
        "eval/reward_per_step": sum(returns) / sum(lengths),
        "eval/success_rate": np.mean([page.success for page in played]),
        "eval/regret": np.mean([page.regret for page in played]),
        "eval/episodes": episodes,
    }
    for name, value in expected.items():
        assert rows[-1][name] == pytest.approx(value, rel=1e-9), name
    assert rows[-1]["eval/exact_return"] is None  # the diary has no transition table
    first = rows.index(evaluated[0])
    assert [row["train/solved"] for row in rows] == [float(i >= first) for i in range(len(rows))]
    assert {*expected, "eval/exact_return"} == {name for name in NAMES if name.startswith("eval/")}
    assert all(name in load_catalogue() for name in set(rows[-1]) - set(NOT_METRICS))


def test_the_exact_return_is_the_expectation(tmp_path: Path) -> None:
    """The distribution over FrozenLake's states, pushed forward a hundred times."""
    sections = {"env": {"id": "FrozenLake-v1", "n_envs": 2, "wrappers": []}, "eval": {"episodes": 2}}
    data = {"name": "test", "algo": PPO, "policy": {"hidden": [8]}, "train": {"env_steps": 64}, **sections}
    result = run(Resolved(validate(data, {})), tmp_path)
    logged = list(MetricRows(result.run.metrics_path))[-1]["eval/exact_return"]
    agent = api.load(f"{result.run.id}/last", runs_dir=tmp_path)
    table: Any = gym.make("FrozenLake-v1").unwrapped
    here, expected = np.array(table.initial_state_distrib, float), 0.0
    for _ in range(100):
        after = np.zeros(16)
        for state in np.flatnonzero(here):
            for chance, next_state, reward, over in table.P[state][agent.predict(int(state))]:
                expected += here[state] * chance * reward
                after[next_state] += here[state] * chance * (not over)
        here = after
    assert logged == pytest.approx(expected, abs=1e-9)
