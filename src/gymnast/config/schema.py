"""The typed configuration of one run. The resolved copy is saved with the run and is enough to repeat it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    SerializeAsAny,
    model_validator,
)

from gymnast.config.algorithms import CONFIGS, OnPolicyConfig, config_of, names
from gymnast.config.atari import AtariConfig, misfit
from gymnast.config.model import Model
from gymnast.config.spec import EnvSpec
from gymnast.config.wrappers import SETTINGS, settings_of
from gymnast.errors import did_you_mean


class WrapperConfig(Model):
    """One wrapper by name and its arguments: `{id: observation_stack, size: 4}`, or just the name."""

    id: str
    args: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _arguments(self) -> WrapperConfig:
        if self.id in SETTINGS:  # others are refused when the envs are made
            settings_of(self.id, self.args)
        return self


def _wrapper(raw: Any) -> Any:
    if isinstance(raw, str):
        return {"id": raw}
    if isinstance(raw, dict) and "id" in raw and "args" not in raw:
        return {"id": raw["id"], "args": {k: v for k, v in raw.items() if k != "id"}}
    return raw


class EnvConfig(Model):
    """Which environment, how many copies, and how they are stepped."""

    id: str
    n_envs: PositiveInt | Literal["auto"] = 8
    kwargs: dict[str, Any] = Field(default_factory=dict)
    """Arguments of `gymnasium.make`."""
    atari: AtariConfig | None = None
    """How an Atari game (`ALE/…`) is played; without it the env is what `gymnasium.make` gives."""
    module: str | None = None
    """Module to import first, for packages that register their envs on import."""
    time_limit: PositiveInt | None = None
    """Cut episodes off after this many steps instead of the registered limit."""
    wrappers: list[Annotated[WrapperConfig, BeforeValidator(_wrapper)]] = Field(default_factory=list)
    action_mask: Literal["auto", "off"] = "auto"
    """`auto` uses `info["action_mask"]` where the env gives one."""
    vectorization: Literal["auto", "native", "envpool", "inprocess", "workers"] = "auto"
    """How the copies are stepped; `auto` takes the fastest way that gives the same env."""
    n_workers: PositiveInt | Literal["auto"] = "auto"
    """Worker processes, or EnvPool's threads; one per core by default."""
    resume_every: PositiveInt | None = None
    """Env steps between resets of all slots where env states cannot be saved (EnvPool): the points a resume can start from."""
    start_method: Literal["forkserver", "spawn"] = "forkserver"
    worker_timeout: PositiveFloat = 60.0
    """Seconds after which a silent worker counts as hung."""
    on_worker_failure: Literal["restart", "abort"] = "restart"
    max_restarts: NonNegativeInt = 10
    """Restarts of all workers together before the run is given up."""

    @model_validator(mode="after")
    def _atari_game(self) -> EnvConfig:
        wrong = None if self.atari is None else misfit(self.id, self.kwargs)
        if wrong is not None:
            raise ValueError(wrong)
        return self


class ConvLayer(Model):
    """One convolution of a CNN that is given layer by layer; a ReLU follows."""

    channels: PositiveInt
    kernel: PositiveInt
    stride: PositiveInt = 1
    padding: NonNegativeInt = 0


class PolicyConfig(Model):
    """The networks."""

    cnn: Literal["auto", "none", "nature", "impala"] | list[ConvLayer] = "auto"
    """What reads images: Nature's (Mnih et al. 2015) or IMPALA's CNN, or layers one by one; actor and critic share it.
    `auto` is Nature's for uint8 images of at least 36×36 pixels; `none` lays them out flat."""
    cnn_features: PositiveInt | None = None
    """Size of the layer behind the convolutions: 512 for Nature's, 256 for IMPALA's. `hidden` follows it."""
    background: float = Field(0.0, ge=0, le=255)
    """Value of uint8 pixels that is zero for the CNN. Learning starts sooner when most of the picture has it; 0 is black."""
    precision: Literal["auto", "float32", "tf32", "bf16"] = "auto"
    """Arithmetic of the CNN; weights stay float32. `auto` is bf16 where the machine computes with it, else float32."""
    hidden: list[PositiveInt] = Field(default_factory=lambda: [64, 64])
    """Layers of actor and critic, behind the CNN where there is one."""
    critic_hidden: list[PositiveInt] | None = None
    """Layers of the critic when they differ from `hidden`; separate trunks only."""
    shared_trunk: bool = False
    """One trunk for actor and critic. Separate trunks are clearly better on classic control."""
    activation: Literal["tanh", "relu", "elu", "silu", "gelu", "leaky_relu"] = "tanh"
    layer_norm: bool = False
    dropout: float = Field(0.0, ge=0, lt=1)
    """Active in the critic's loss; off while collecting and inside the ratio, so that the first ratio is 1."""
    init: Literal["orthogonal", "torch"] = "orthogonal"
    """Orthogonal: √2 hidden, 0.01 policy head, 1 value head, zero bias."""
    log_std_init: float = 0.0
    """Initial log standard deviation of Gaussian actions."""
    state_dependent_std: bool = False
    """The log standard deviation is an output of the actor instead of a parameter of its own."""
    squash_actions: bool = False
    """Box actions are tanh of a Gaussian, stretched to the bounds, instead of a Gaussian clipped to them."""
    normalize_obs: bool = False
    """Running mean and variance as buffers of the policy: saved with it, frozen in evaluation."""
    obs_clip: PositiveFloat = 10.0

    @model_validator(mode="after")
    def _one_trunk(self) -> PolicyConfig:
        if self.shared_trunk and self.critic_hidden is not None:
            raise ValueError("critic_hidden is for separate trunks; remove it or set shared_trunk: false")
        return self


class StopRule(Model):
    """Stop as soon as a catalogued metric passes a bound."""

    metric: str
    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> StopRule:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a stop rule needs exactly one of at_least and at_most")
        return self

    def met_by(self, value: float | None) -> bool:
        """Whether `value` passes the bound; an absent value never does."""
        if value is None:
            return False
        return value >= self.at_least if self.at_least is not None else value <= (self.at_most or 0.0)

    def __str__(self) -> str:
        bound = f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"
        return f"{self.metric} {bound}"


class TrainConfig(Model):
    """Budget, device, stopping and checkpoints."""

    env_steps: PositiveInt | None = None
    """Budget in agent steps over all envs. Exactly one of env_steps and vec_steps is given; the other follows."""
    vec_steps: PositiveInt | None = None
    """Budget in vector steps (env_steps ÷ n_envs)."""
    seed: NonNegativeInt = 0
    device: str = "auto"
    threads: PositiveInt | Literal["auto"] = "auto"
    """Torch threads; one beats two for small networks, a CNN on the CPU takes all cores."""
    overlap: Literal["auto", "none", "envs", "learner"] = "auto"
    """What runs at the same time on a GPU. `envs`: the policy acts for whichever env workers are ready while the others step; no
    sample changes by it. `learner`: workers also go on while the policy learns, at most one iteration behind it; `auto` does so
    unless `deterministic`. `none`: one thing after the other."""
    deterministic: bool = False
    """On a GPU, only kernels that give the same bits every time, which may be slower. On the CPU that is always so."""
    stop_when_solved: bool = True
    """Stop when an evaluation reaches spec.solved_at."""
    stop: list[StopRule] = Field(default_factory=list)
    """Further stop rules on any catalogued metric."""
    checkpoint_every: PositiveInt | None = None
    """Env steps between checkpoints; a tenth of the budget by default. The last and the best are always written."""
    keep_checkpoints: PositiveInt = 2
    """How many besides the best one stay on disk."""
    grace_period: PositiveFloat = 10.0
    """Seconds from the first Ctrl-C or SIGTERM to a checkpoint on disk; a longer iteration is left and repeated on resume."""
    trace_hashes: bool = False
    """Log hashes of every batch, gradient and weight update to trace.jsonl, the proof of `gymnast rewind`."""
    init_from: str | None = Field(None, min_length=1)
    """Begin with the weights of another run: RUN (its best checkpoint), RUN/last, RUN/step=N, or of an SB3 model.zip."""
    init_optimizer: bool = False
    """Take the optimizer's state from there as well; refused unless every parameter fits."""

    @model_validator(mode="after")
    def _optimizer_of_something(self) -> TrainConfig:
        if self.init_optimizer and self.init_from is None:
            raise ValueError("init_optimizer needs init_from, which names the run whose optimizer's state is meant")
        return self

    @model_validator(mode="after")
    def _one_budget(self) -> TrainConfig:
        if self.env_steps is not None and self.vec_steps is not None:
            raise ValueError("give env_steps or vec_steps, not both: one is the budget, the other follows from it")
        return self


class EvalConfig(Model):
    """When and how the policy is judged."""

    every: PositiveInt | None = None
    """Env steps between evaluations; a twentieth of the budget by default."""
    episodes: PositiveInt = 100
    n_envs: PositiveInt | Literal["auto"] = "auto"
    """Env slots; each plays the same number of whole episodes, so short ones are not favoured."""
    deterministic: bool = True
    """Most likely action instead of a sampled one; recorded with the score."""
    standard_errors: float = Field(0.0, ge=0)
    """How many standard errors above spec.solved_at the mean return must lie to count as solved; 0 is the plain mean."""
    warmup: NonNegativeInt = 0
    """No evaluation before this many env steps."""
    start_at: float | None = None
    """No evaluation before rollout/return_mean has reached this; spec.solved_at × start_fraction when that is set."""
    start_fraction: float | None = Field(None, gt=0)
    """Share of the way from spec.random_score to spec.solved_at the training return must have gone."""
    mode: Literal["auto", "inprocess", "worker"] = "auto"
    """`worker` judges a snapshot of the weights in a process beside training; `auto` does so once evaluations take 2 s."""
    env: dict[str, Any] = Field(default_factory=dict)
    """Overrides of the env section for evaluation only; each is printed and stored with the score."""


class LogConfig(Model):
    """What is shown and kept."""

    window: PositiveInt = 100
    """Episodes in the running means of rollout/return_mean and rollout/length_mean."""
    interval: PositiveFloat = 0.5
    """Seconds between refreshes of the live table."""
    max_log_bytes: PositiveInt = 5_000_000


def _algorithm(raw: Any) -> Any:
    if isinstance(raw, OnPolicyConfig):
        return raw
    if not isinstance(raw, dict) or not isinstance(raw.get("id"), str):
        raise ValueError(f"algo needs an id: one of {', '.join(CONFIGS)}")
    config = config_of(raw["id"])
    if config is None:
        known = names()
        raise ValueError(f"unknown algorithm '{raw['id']}'.{did_you_mean(raw['id'], known)} Known: {', '.join(known)}.")
    return config.model_validate(raw)


class RunConfig(Model):
    """Everything that defines one training run."""

    name: str = ""
    """The config id it came from, e.g. CartPole-v1:ppo."""
    env: EnvConfig
    policy: PolicyConfig = Field(default_factory=PolicyConfig)
    algo: Annotated[SerializeAsAny[OnPolicyConfig], BeforeValidator(_algorithm)]
    train: TrainConfig
    eval: EvalConfig = Field(default_factory=EvalConfig)
    log: LogConfig = Field(default_factory=LogConfig)
    spec: EnvSpec = Field(default_factory=EnvSpec)
