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

from gymnast import own_code, plugins
from gymnast.config.algorithms import CONFIGS, AlgorithmConfig, config_of, names
from gymnast.config.atari import AtariConfig, misfit
from gymnast.config.model import Model
from gymnast.config.randomise import Drawn
from gymnast.config.rewards import Names, RewardsConfig
from gymnast.config.spec import EnvSpec
from gymnast.config.steps import Cadence, Wait
from gymnast.config.tasks import PlanConfig, check_plan
from gymnast.config.wrappers import SETTINGS, settings_of
from gymnast.errors import did_you_mean

SHIPPED_POLICY = "actor_critic"
FAMILY_SECTIONS = frozenset({"atari"})
"""Sections inside `env` that belong to one family of envs."""


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
    rewards: RewardsConfig | None = None
    """Terms that are learned from besides the env's own reward, which alone is the score."""
    randomise: dict[str, Drawn] = Field(default_factory=dict)
    """Parameters of the env that are drawn for every episode: `{gravity: [-12, -8]}`."""
    randomise_difficulty: float = Field(1.0, ge=0, le=1)
    """Share of the way from an env's usual parameters to the ends of their ranges: 0 is the usual env, 1 the whole ranges."""
    action_mask: Literal["auto", "off"] = "auto"
    """`auto` uses `info["action_mask"]` where the env gives one."""
    vectorization: Literal["auto", "native", "envpool", "inprocess", "workers"] = "auto"
    """How the copies are stepped; `auto` takes the fastest way that gives the same env."""
    n_workers: PositiveInt | Literal["auto"] = "auto"
    """Worker processes, or EnvPool's threads; one per core by default."""
    core_turns: Literal["auto", "on", "off"] = "auto"
    """Let the workers of Atari games change cores, for where cores are not equally fast; never changes a result. `auto` tries it
    in the first minute of a run that fills a machine of at least 4 cores, and goes on if it was faster."""
    resume_every: Cadence | None = None
    """Env steps (or `500 vec_steps`) between resets of all slots where
    env states cannot be saved (EnvPool): the points a resume can start from."""
    start_method: Literal["forkserver", "spawn"] = "forkserver"
    worker_timeout: PositiveFloat = 60.0
    """Seconds after which a silent worker counts as hung."""
    on_worker_failure: Literal["restart", "abort"] = "restart"
    max_restarts: NonNegativeInt = 10
    """Restarts of all workers together before the run is given up."""

    @property
    def reward_terms(self) -> tuple[str, ...]:
        """The names of the terms of the reward."""
        return () if self.rewards is None else tuple(self.rewards.terms)

    @model_validator(mode="after")
    def _atari_game(self) -> EnvConfig:
        wrong = None
        if self.atari is not None:
            wrong = misfit(self.id, self.kwargs)
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
    """The networks. A plug-in's policy has a config of its own, with what it adds."""

    id: str = SHIPPED_POLICY
    """`actor_critic`, the policy of an installed plug-in, or one of your own by import path (`my_module:MyPolicy`)."""
    encoder: str | None = Field(None, pattern=r"^[\w.]+:[\w.]+$")
    """An encoder of your own by import path (`my_module:MyNet`): an `nn.Module` from observations to features [B, F], which
    `hidden` follows. It takes the place of the CNN."""
    encoder_kwargs: dict[str, Any] = Field(default_factory=dict)
    """What the encoder is made with besides the observation space."""
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
    """Layers of actor and critic, behind the CNN if there is one."""
    critic_hidden: list[PositiveInt] | None = None
    """Layers of the critic when they differ from `hidden`; separate trunks only."""
    shared_trunk: bool = False
    """One trunk for actor and critic. Separate trunks are clearly better on classic control."""
    memory: Literal["none", "lstm", "gru"] = "none"
    """What an episode is remembered by, between the encoder and `hidden`; see docs/algorithms/recurrent.md."""
    memory_size: PositiveInt = 64
    """Units of each recurrent layer."""
    memory_layers: PositiveInt = 1
    shared_memory: bool = False
    """One memory for actor and critic instead of one for each; with a shared trunk it always is one."""
    sequence_length: PositiveInt | None = None
    """Steps through which a policy with memory is differentiated; a divisor of `algo.n_steps`, which is the default."""
    burn_in: NonNegativeInt = 0
    """Steps before a sequence from which its first state is computed anew in each minibatch; 0 takes the stored state."""
    activation: Literal["tanh", "relu", "elu", "silu", "gelu", "leaky_relu"] = "tanh"
    layer_norm: bool = False
    batch_norm: bool = False
    """Running mean and variance, the same while collecting and in the ratio; they move once per iteration, after the update."""
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
    normalize_obs_steps: PositiveInt | None = None
    """Env steps after which mean and variance stay as they are; by default they always move. Statistics that move change what
    the policy does without its learning anything, which a small learning rate cannot follow."""
    obs_clip: PositiveFloat = 10.0

    @model_validator(mode="after")
    def _fits_together(self) -> PolicyConfig:
        if self.encoder_kwargs and self.encoder is None:
            raise ValueError("encoder_kwargs needs encoder, which names the module that they are for")
        if self.shared_trunk and self.critic_hidden is not None:
            raise ValueError("critic_hidden is for separate trunks; remove it or set shared_trunk: false")
        return self

    @model_validator(mode="after")
    def _remembers(self) -> PolicyConfig:
        if self.memory != "none" and self.batch_norm:
            raise ValueError("batch_norm has no statistics of what is remembered: use layer_norm with memory")
        if self.id != SHIPPED_POLICY or self.memory != "none":
            return self
        for key in ("memory_size", "memory_layers", "shared_memory", "sequence_length", "burn_in"):
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key} is for a policy with memory: set memory to lstm or gru")
        return self

    @model_validator(mode="after")
    def _one_norm(self) -> PolicyConfig:
        if self.layer_norm and self.batch_norm:
            raise ValueError("layer_norm and batch_norm are two ways to normalise the same layers: keep one")
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
        if self.at_least is not None:
            return value >= self.at_least
        return value <= (self.at_most or 0.0)

    def __str__(self) -> str:
        if self.at_least is not None:
            bound = f"≥ {self.at_least:g}"
        else:
            bound = f"≤ {self.at_most:g}"
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
    checkpoint_every: Cadence | None = None
    """Env steps (or `500 vec_steps`) between checkpoints; a tenth of the budget by default.
    The last and the best are always written."""
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
    """When and how the policy is evaluated."""

    every: Cadence | None = None
    """Env steps (or `500 vec_steps`) between evaluations; by default
    as many as leave about a tenth of the steps of a run to evaluations."""
    episodes: PositiveInt | None = None
    """Whole episodes of one evaluation; by default 100, or as many as that share allows."""
    steps: PositiveInt | None = None
    """Env steps of one evaluation instead of a number of episodes: every slot plays its share, the last episode to its end."""
    n_envs: PositiveInt | Literal["auto"] = "auto"
    """Env slots; each plays the same number of whole episodes, so short ones are not favoured."""
    deterministic: bool = True
    """Most likely action instead of a sampled one; recorded with the score."""
    standard_errors: float = Field(2.0, ge=0)
    """How many standard errors above spec.solved_at the mean return must lie to count as solved; 0 is the plain mean. An exact
    expected return needs no margin."""
    warmup: Wait = 0
    """No evaluation before this many env steps (or `500 vec_steps`)."""
    start_at: float | None = None
    """No evaluation before rollout/return_mean has reached this; spec.solved_at × start_fraction when that is set."""
    start_fraction: float | None = Field(None, gt=0)
    """Share of the way from spec.random_score to spec.solved_at the training return must have gone."""
    mode: Literal["auto", "inprocess", "worker"] = "auto"
    """`worker` evaluates a snapshot of the weights in a process next to training; `auto` does so once evaluations take 2 s."""
    env: dict[str, Any] | list[dict[str, Any]] = Field(default_factory=dict)
    """Overrides of the env section for evaluation only; each is printed and stored with the score. A list gives one score per
    entry: the first decides, the others are logged under their `name`."""

    @property
    def env_settings(self) -> dict[str, dict[str, Any]]:
        """The overrides of each setting by name; the first one, which decides, has none."""
        if isinstance(self.env, dict):
            return {"": self.env}
        named = {}
        for number, entry in enumerate(self.env, 1):
            name = ""
            if number > 1:
                name = str(entry.get("name", f"setting_{number}"))
            named[name] = {key: value for key, value in entry.items() if key != "name"}
        return named

    @model_validator(mode="after")
    def _named_settings(self) -> EvalConfig:
        if isinstance(self.env, list):
            if not self.env:
                raise ValueError("env is a list without settings: remove it, or write at least one")
            if len(self.env_settings) < len(self.env):
                raise ValueError("two settings of env have the same name")
            for name in self.env_settings:
                if name and not name.replace("_", "").replace("-", "").isalnum():
                    raise ValueError(f"a setting's name has letters, digits, - and _ only, not '{name}'")
        return self

    @model_validator(mode="after")
    def _one_size(self) -> EvalConfig:
        if self.steps is not None and self.episodes is not None:
            raise ValueError("give steps or episodes, not both: one is the size of an evaluation")
        return self


class LogConfig(Model):
    """What is shown and kept."""

    window: PositiveInt = 100
    """Episodes in the running means of rollout/return_mean and rollout/length_mean."""
    interval: PositiveFloat = 0.5
    """Seconds between refreshes of the live table."""
    max_log_bytes: PositiveInt = 5_000_000
    verbose: Literal[0, 1, 2] = 1
    """As in Stable-Baselines3: 0 prints the result alone, 1 and 2 show the live table."""
    all_metrics: bool = False
    """Show every metric in the live table from the beginning."""
    video: bool = True
    """Film an episode of the best and of the last weights at the end (videos/). Films of short runs leave pictures out, so that
    this takes at most a second or a twentieth of the run."""
    rollouts: bool = True
    """Write these episodes as tables, step by step (rollouts/, Parquet and CSV)."""
    report: bool = True
    """Write report.md and report.html at the end."""
    sinks: list[str] = Field(default_factory=list)
    """What receives every row of metrics: `tensorboard`, `wandb`, `trackio` and plug-ins."""
    diagnostics_every: PositiveInt | Literal["auto"] | None = "auto"
    """Env steps between closer looks at the network and the rollout: norms by part, dead ReLUs, histograms, statistics of
    observations and actions. `auto` spends about a hundredth of the time on them; null: never."""
    project: str | None = None
    """Of W&B and Trackio; the env's id by default."""
    entity: str | None = None
    """User or team at W&B; the one that is logged in by default."""
    tags: list[str] = Field(default_factory=list)
    """Further tags at W&B, besides algorithm and env."""
    capture_video: bool = False
    """Send the run's videos to its trackers as well."""


def _policy(raw: Any) -> Any:
    if isinstance(raw, PolicyConfig):
        return raw
    if isinstance(raw, dict):
        name = raw.get("id", SHIPPED_POLICY)
    else:
        name = SHIPPED_POLICY
    if name == SHIPPED_POLICY:
        return PolicyConfig.model_validate(raw)
    if own_code.is_own(name):
        return _config_of_own_policy(own_code.find(str(name), "policy.id"), str(name)).model_validate(raw)
    plugin = plugins.find(plugins.POLICIES, str(name))
    if plugin is None:
        known = [SHIPPED_POLICY, *(one.name for one in plugins.installed(plugins.POLICIES))]
        raise ValueError(f"unknown policy '{name}'.{did_you_mean(str(name), known)} Known: {', '.join(known)}.")
    config = getattr(plugins.load(plugin), "Config", None)
    if not (isinstance(config, type) and issubclass(config, PolicyConfig)):
        raise plugins.PluginError(f"The {plugin} has no `Config`, a subclass of gymnast's PolicyConfig.")
    return config.model_validate(raw)


def _config_of_own_policy(found: Any, reference: str) -> type[PolicyConfig]:
    """The settings of a policy class: its own `Config` where it has one."""
    config = getattr(found, "Config", PolicyConfig)
    if not (isinstance(config, type) and issubclass(config, PolicyConfig)):
        raise ValueError(f"the `Config` of '{reference}' is not derived from gymnast's PolicyConfig")
    return config


class AlertRule(Model):
    """How one alert is raised."""

    threshold: float | None = None
    """The number from which it holds, in place of its own (`gymnast metrics` names the alerts that read a metric)."""
    off: bool = False
    """Never raise it."""


class AlertsConfig(Model):
    """What counts as wrong while a run trains."""

    rules: dict[str, AlertRule] = Field(default_factory=dict)
    """Changes by id of the alert: `{kl_high: {threshold: 0.3}, return_plateau: {off: true}}`."""
    strict: bool = False
    """Stop the run at the first warning or error."""


def _algorithm(raw: Any) -> Any:
    if isinstance(raw, AlgorithmConfig):
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
    policy: Annotated[SerializeAsAny[PolicyConfig], BeforeValidator(_policy)] = Field(default_factory=PolicyConfig)
    algo: Annotated[SerializeAsAny[AlgorithmConfig], BeforeValidator(_algorithm)]
    train: TrainConfig
    eval: EvalConfig = Field(default_factory=EvalConfig)
    log: LogConfig = Field(default_factory=LogConfig)
    alerts: AlertsConfig = Field(default_factory=AlertsConfig)
    spec: EnvSpec = Field(default_factory=EnvSpec)
    plan: PlanConfig | None = None
    """Several tasks, at the same time or one after the other."""

    @model_validator(mode="after")
    def _names_for_rewards(self) -> RunConfig:
        if self.env.rewards is not None:
            self.env.rewards.learn_names(self.reward_names)
        return self

    @property
    def reward_names(self) -> Names:
        """What terms of the reward may name."""
        gamma, spec = self.algo.gamma, self.spec
        return Names(
            gamma=gamma if isinstance(gamma, (int, float)) else None,
            observation=tuple(spec.observation),
            actions=tuple(spec.actions),
            action_components=tuple(component.name for component in spec.action_components),
        )

    @model_validator(mode="after")
    def _plan_fits(self) -> RunConfig:
        if self.plan is not None:
            check_plan(self, self.plan)
        return self
