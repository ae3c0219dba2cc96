"""From the facts of a run to the text of its script: which parts it needs, and what fills their gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from gymnast.config.wrappers import settings_of
from gymnast.hub.ejected.facts import SCHEDULES, Facts
from gymnast.hub.ejected.header import batch_size, constants, docstring, has_critic, imports
from gymnast.hub.ejected.observations import Layout, layout
from gymnast.hub.ejected.schedules import Settings
from gymnast.hub.ejected.template import literal, piece, wrapped

PIECES = ("envs", "network", "distribution", "collect", "returns", "update", "main")
_LOSS = ("clip_range", "clip_range_vf", "ent_coef", "vf_coef")
_STEP = ("max_grad_norm", "learning_rate")


# Source of each activation of x, and of the gradient {} taken back through it, given its output {}.
_ACTIVATIONS = {
    "tanh": ("2.0 * torch.sigmoid(2.0 * x) - 1.0  # tanh, five times faster", "torch.ops.aten.tanh_backward({}, {})"),
    "relu": ("torch.relu(x)", "torch.ops.aten.threshold_backward({}, {}, 0.0)"),
    "elu": ("F.elu(x)", "torch.ops.aten.elu_backward({}, 1.0, 1.0, 1.0, True, {})"),
    "leaky_relu": ("F.leaky_relu(x)", "torch.ops.aten.leaky_relu_backward({}, {}, 0.01, True)"),
    "silu": ("F.silu(x)", "torch.ops.aten.silu_backward({}, {})"),
    "gelu": ("F.gelu(x)", "torch.ops.aten.gelu_backward({}, {})"),
}
_KEEPS_INPUT = ("silu", "gelu")


def script(facts: Facts) -> str:
    """The text of the whole script."""
    settings = _settings(facts)
    view = layout(facts)
    flags = _flags(facts, settings, view)
    tokens = {**_env_tokens(facts, view), **_network_tokens(facts, flags), **_training_tokens(facts, settings, flags)}
    body = settings.functions() + "".join(piece(name, flags, tokens) for name in PIECES)
    rest = constants(facts, settings, view, flags) + "\n\n" + body
    return wrapped(docstring(facts) + imports(rest) + "\n" + rest)


def _settings(facts: Facts) -> Settings:
    """The hyperparameters that act in this run."""
    algo = facts.config.algo
    settings = Settings()
    used = ["learning_rate", "gamma", "max_grad_norm", "ent_coef"]
    if algo.id != "reinforce":
        used += ["gae_lambda"]
    if has_critic(facts):
        used += ["vf_coef"]
    if algo.id == "ppo":
        used += ["n_epochs", "clip_range", "clip_range_vf", "target_kl"]
    for name in used:
        value = getattr(algo, name)
        if isinstance(value, (float, *SCHEDULES)):
            settings.add(name, value)
    return settings


_UNTIL_THE_EPISODES_ENDED = {
    "steps": "rollout.length",
    "until_steps": ": rollout.length",
    "all_obs": "obs[: rollout.length + 1]",
    "until_next": ": rollout.length + 1",
}
_UNTIL_THE_ROLLOUT_IS_FULL = {"steps": "N_STEPS", "until_steps": ":N_STEPS", "all_obs": "obs", "until_next": ":"}


def _where(holds: bool, text: str) -> str:
    """A piece of source, or nothing."""
    if holds:
        return text
    return ""


def _flags(facts: Facts, settings: Settings, view: Layout) -> set[str]:
    config, policy, algo = facts.config, facts.config.policy, facts.config.algo
    action, ppo, whole = facts.action_space, algo.id == "ppo", algo.id == "reinforce"
    normalize = getattr(algo, "normalize_advantage", "off")
    critic = has_critic(facts)
    size = batch_size(facts)
    samples = facts.n_envs * (getattr(algo, "episodes_per_env", 1) if whole else facts.n_steps)
    one_batch = ppo and size >= samples
    hidden = bool(policy.hidden or (critic and policy.critic_hidden))
    autograd = policy.layer_norm or policy.dropout > 0
    shared = policy.shared_trunk and critic
    norm = policy.normalize_obs and not view.index
    every: dict[str, Any] = {
        "ppo": ppo,
        "whole": whole,
        "critic": critic,
        "mask": facts.mask,
        "categorical": isinstance(action, spaces.Discrete),
        "multi": isinstance(action, spaces.MultiDiscrete),
        "gaussian": isinstance(action, spaces.Box),
        "encode": view.encode,
        "index": view.index,
        "multi_index": view.columns,
        "norm": norm,
        "norm_steps": norm and policy.normalize_obs_steps is not None,
        "skipped": norm and view.skipped,
        "reward_wrapper": any(wrapper.id.startswith("reward_") for wrapper in config.env.wrappers),
        "autograd": autograd,
        "layer_norm": policy.layer_norm,
        "dropout": policy.dropout > 0,
        "activation": hidden,
        "keeps_input": hidden and not autograd and policy.activation in _KEEPS_INPUT,
        "orthogonal": policy.init == "orthogonal",
        "shared": shared,
        "features": norm or view.columns or shared,
        "entropy": settings.constants.get("ent_coef") != 0.0,
        "reward_norm": getattr(algo, "normalize_reward", False),
        "adv_norm": normalize != "off",
        "norm_batch": ppo and normalize == "batch",
        "norm_rollout": normalize == "rollout" or (algo.id == "a2c" and normalize != "off"),
        "plain_returns": not critic and normalize == "off" and getattr(algo, "baseline", None) == "none",
        "baseline_mean": getattr(algo, "baseline", None) == "mean",
        "single_samples": 1 in ((size, samples % size) if ppo else (samples,)),
        "huber": critic and getattr(algo, "value_loss", "mse") == "huber",
        "clip_vf": "clip_range_vf" in settings,
        "target_kl": "target_kl" in settings,
        "max_grad_norm": "max_grad_norm" in settings,
        "rmsprop": algo.optimizer.id != "adam",
        "rmsprop_tf": algo.optimizer.id == "rmsprop",
        "weight_decay": algo.optimizer.weight_decay > 0,
        "scheduled_rate": "learning_rate" in settings.schedules,
        "one_batch": one_batch,
        "shuffle": ppo and not one_batch,
        "jumps": settings.jumps(),
        "progress": "progress" in settings.axes(),
        "vec_steps": "vec_steps" in settings.axes(),
    }
    return {name for name, value in every.items() if value}


def _env_tokens(facts: Facts, view: Layout) -> dict[str, str]:
    env, action = facts.config.env, facts.action_space
    rewards = []
    for wrapper in env.wrappers:
        if wrapper.id == "reward_clip":
            clip: Any = settings_of(wrapper.id, wrapper.args)
            low, high = literal(clip.low), literal(clip.high)
            rewards.append(f"np.clip(rollout.reward[t], {low}, {high}, out=rollout.reward[t])")
        elif wrapper.id == "reward_scale":
            scale: Any = settings_of(wrapper.id, wrapper.args)
            rewards.append(f"rollout.reward[t] *= np.float32({literal(scale.factor)})")
            rewards.append(f"rollout.reward[t] += np.float32({literal(scale.offset)})")
    return {
        "obs_shape": view.shape,
        "obs_dtype": view.dtype,
        "encode": view.encode,
        "encode_says": view.says,
        "index_shape": "[B, K]" if view.columns else "[B]",
        "reward_wrapper": "\n".join(rewards),
        "info": "info" if facts.mask else "_",
        "executed": _executed(action),
        "box_shape": _where(len(action.shape or ()) != 1, f".reshape(-1, *{literal(tuple(action.shape or ()))})"),
        "random_steps": _random_actions(facts),
    }


def _executed(action: spaces.Space) -> str:
    """Source of `actions` as the envs take them."""
    starts = [int(start) for start in np.ravel(getattr(action, "start", 0))]
    if isinstance(action, spaces.Discrete):
        if starts[0]:
            return f"(actions + {starts[0]}).tolist()"
        return "actions.tolist()"
    if isinstance(action, spaces.MultiDiscrete):
        moved = "actions"
        if any(starts):
            moved = f"(actions + np.array({literal(starts)}))"
        return f"{moved}.astype(np.{action.dtype})"
    return "actions"  # clipped already


def _random_actions(facts: Facts) -> str:
    """A step of the warm-up with uniform actions, drawn as the run drew them; only possible ones if there is a mask."""
    action = facts.action_space
    if facts.mask:
        scores = "scores = np.where(rollout.mask[t], random.random(rollout.mask[t].shape), -1.0)"
        parts = "np.split(scores, np.cumsum(CHOICES)[:-1], axis=-1)"
        best = f"np.stack([part.argmax(-1) for part in {parts}], -1)"
        if isinstance(action, spaces.Discrete):
            best = "scores.argmax(-1)"
        return f"{scores}\nenvs.step({best}, rollout, t)"
    if isinstance(action, spaces.Discrete):
        return "envs.step(random.integers(0, N_OUTPUTS, N_ENVS), rollout, t)"
    if isinstance(action, spaces.MultiDiscrete):
        return "envs.step(random.integers(0, np.array(CHOICES), (N_ENVS, len(CHOICES))), rollout, t)"
    bounds = "space = envs.envs[0].action_space\nlow, high = np.maximum(space.low, -1e3), np.minimum(space.high, 1e3)\n"
    return bounds + "envs.step(random.uniform(low, high, (N_ENVS, *space.shape)).astype(np.float32), rollout, t)"


def _network_tokens(facts: Facts, flags: set[str]) -> dict[str, str]:
    policy = facts.config.policy
    forward, backward = _ACTIVATIONS[policy.activation]
    autograd, keeps = "autograd" in flags, "keeps_input" in flags
    styles = " and ".join(name.replace("_", " ") for name in ("layer_norm", "dropout") if name in flags)
    between = _where("activation" in flags, f" with {policy.activation} between them")
    by_hand = f"Linear layers{between}. The backward pass is written out: autograd's last bits are others."
    critic = "actor and critic on one trunk" if "shared" in flags else "Separate actor and critic"
    outputs = "Logits [B, N_OUTPUTS]."
    if "gaussian" in flags:
        outputs = "Means and log standard deviations [B, 2 · N_OUTPUTS]."
    dropout, kept = "dropout" in flags, "self.before[i]" if keeps else "x"
    if "norm" in flags:
        inputs = "self.norm(obs)"
    elif "multi_index" in flags:
        inputs = "obs + torch.tensor(FIRST_COLUMNS)"
    else:
        inputs = "obs"
    return {
        "activated": "torch.tanh(x)" if autograd and policy.activation == "tanh" else forward,
        "back_through_kept": backward.format("d", kept),
        "back_through_hidden": backward.format("d.mm(layer.weight)", kept),
        "back_through_last": backward.format("d", "self.last"),
        "inputs": inputs,
        "outputs": "self.outputs.detach()" if autograd else "self.actor(x)",
        "mlp_says": f"Linear layers{between}, with {styles}." if autograd else by_hand,
        "agent_says": f"{critic[0].upper()}{critic[1:]}." if "critic" in flags else "The policy; there is no critic.",
        "params_says": outputs,
        "critic_hidden": "HIDDEN" if policy.critic_hidden is None else "CRITIC_HIDDEN",
        "backward_type": "Tensor" if "shared" in flags else "None",
        "and_return": _where("shared" in flags, "; return the input's"),
        "dropout_argument": _where(dropout, ", dropout: bool = False"),
        "dropout_pass": _where(dropout, ", dropout"),
        "mask_argument": _where("mask" in flags, ", mask: Tensor"),
        "mask_t": _where("mask" in flags, ", mask[t]"),
        "mask_batch": _where("mask" in flags, ', batch["mask"]'),
        "d_value_argument": _where("critic" in flags, ", d_value: Tensor"),
        "d_entropy_argument": _where("entropy" in flags, ", d_entropy: float"),
    }


def _training_tokens(facts: Facts, settings: Settings, flags: set[str]) -> dict[str, str]:
    optimizer = facts.config.algo.optimizer
    rate = "LEARNING_RATE" if "learning_rate" in settings.constants else "0.0"
    decay = _where("weight_decay" in flags, ", weight_decay=WEIGHT_DECAY")
    adam = f"Adam([agent.flat], lr=torch.tensor({rate}), betas=BETAS, eps=EPS{decay}, fused=True)"
    loss = [name for name in _LOSS if name in settings and (name != "ent_coef" or "entropy" in flags)]
    epochs = ("n_epochs", *loss, *_STEP, "target_kl")
    shuffled = "shuffle" in flags
    arguments = _where(shuffled, ", generator: torch.Generator") + settings.arguments(*epochs)
    handed = _where(shuffled, ", batch_generator") + settings.now(*epochs)
    surrogate = "−min(rA, clip(r)A)" if "ppo" in flags else "−A·log π"
    value = _where("critic" in flags, " + vf_coef·(V − R)²")
    entropy = _where("entropy" in flags, " − ent_coef·H")
    whole, scaled = "whole" in flags, "reward_norm" in flags
    names = ("learning_rate", "gamma", "gae_lambda", "max_grad_norm", "target_kl", *_LOSS)
    return {
        **{name: settings.name(name) for name in names},
        "n_epochs": "max(1, round(n_epochs))" if "n_epochs" in settings.schedules else "N_EPOCHS",
        **(_UNTIL_THE_EPISODES_ENDED if whole else _UNTIL_THE_ROLLOUT_IS_FULL),
        "gamma_argument": settings.arguments("gamma"),
        "gamma_pass": settings.passed("gamma"),
        "gamma_at": settings.now("gamma"),
        "gae_lambda_argument": settings.arguments("gae_lambda"),
        "gae_lambda_at": settings.now("gae_lambda"),
        "scaler_parameter": _where(scaled, ", scaler: RewardScaler"),
        "scaler_pass": _where(scaled, ", scaler"),
        "learn_arguments": settings.arguments(*loss, *_STEP),
        "learn_pass": settings.passed(*loss, *_STEP),
        "learn_at": settings.now(*loss, *_STEP),
        "learn_type": "Tensor" if "target_kl" in flags else "None",
        "loss_says": f"{surrogate}{value}{entropy}",
        "update_arguments": arguments,
        "update_pass": handed,
        "optimizer_type": "Adam" if optimizer.id == "adam" else "RMSprop",
        "make_adam": f"optimizer = {adam}",
        "reset_optimizer": {
            "adam": "optimizer.state.clear()",
            "rmsprop": "optimizer.square.fill_(1.0)",
            "rmsprop_torch": "optimizer.square.zero_()",
        }[optimizer.id],
        "segments": ", ".join(settings.jumps()),
    }
