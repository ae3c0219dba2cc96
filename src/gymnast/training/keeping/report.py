"""What a person sees of a run: the summary before it, the live table during it, the result after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from gymnast.config.load import Resolved
from gymnast.config.plan import AUTO
from gymnast.config.schedule import over_the_budget
from gymnast.config.schema import RunConfig
from gymnast.config.task_words import summary_of
from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.catalogue import Catalogue
from gymnast.metrics.history import History
from gymnast.metrics.verdict import Verdict
from gymnast.policies.actor_critic import ActorCritic
from gymnast.redaction import redact
from gymnast.terminal import inert
from gymnast.timing import StageTimer
from gymnast.training.keeping.stopping import SOLVED

if TYPE_CHECKING:
    from rich.console import Console

    from gymnast.metrics.drawing import Mark
    from gymnast.training.keeping.result import TrainResult
    from gymnast.training.trainer import Trainer
    from gymnast.training.transfer.begin import Transfer


class Reporter:
    """Prints to the terminal and, without colour codes, to the run's log."""

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self.console = console
        self.quiet = quiet or console is None
        self._log: TextIO | None = None
        self.path = Path()
        """Of the log."""
        self._log_room = 0
        self._waiting: list[str] = []
        self._display: Any = None

    # ---- text ------------------------------------------------------------------------------------------------------

    def say(self, text: str = "", *, style: str | None = None, always: bool = False) -> None:
        """One paragraph to terminal and log, without secrets."""
        text = inert(redact(text))
        if self.console is not None and (always or not self.quiet):
            # A terminal would break a long line within a word; a file or a pipe keeps it whole.
            whole = not self.console.is_terminal
            self.console.print(text, style=style, highlight=False, markup=False, soft_wrap=whole)
        self._to_log(text)

    def warn(self, text: str) -> None:
        """Something the user should know, shown even when quiet."""
        self.say(f"warning: {text}", style="yellow", always=True)

    def note(self, text: str) -> None:
        """Something that is good to know and needs nothing to be done."""
        self.say(f"note: {text}")

    def _to_log(self, text: str) -> None:
        if self._log is None:
            self._waiting.append(text)
            return
        line = text + "\n"
        self._log_room -= len(line.encode())
        if self._log_room > 0:
            try:
                self._log.write(line)
                self._log.flush()
            except OSError:  # a full disk: the log must not end a training
                self._log_room = 0

    def open_log(self, path: Path, max_bytes: int) -> None:
        """Start the run's log with what was said so far."""
        self.path = path
        self._log = path.open("a+", encoding="utf-8")
        self._log_room = max_bytes - path.stat().st_size
        for text in self._waiting:
            self._to_log(text)
        self._waiting.clear()

    def fileno(self) -> int:
        """The open log's descriptor."""
        assert self._log is not None
        return self._log.fileno()

    def reopen(self) -> None:
        """Go on with the log that has the path now: the one so far was deleted, and its content put back."""
        assert self._log is not None
        self._log.close()
        self._log = self.path.open("a+", encoding="utf-8")

    def close(self) -> None:
        """Write the rest of the log and close it."""
        if self._log is not None:
            with suppress(OSError):  # what a full disk did not take is tried again here
                self._log.close()
            self._log = None

    # ---- before ----------------------------------------------------------------------------------------------------

    def summary(self, trainer: Trainer, resolved: Resolved, resumed: str | None) -> None:
        """Config, env, model and device, before the first step."""
        config, plan, about = trainer.config, trainer.plan, trainer.about
        for notice in resolved.notices:
            self.say(notice, style="yellow", always=True)
        threshold = None if config.plan is not None else config.spec.solved_at
        from gymnast.envs.choose import choose_vectorization, resets_cut_episodes, under_debugger

        if under_debugger():
            self.say(f"A debugger is attached: envs are stepped {choose_vectorization(config.env)[0]}.", style="yellow")
        again = f", resuming run {resumed}" if resumed else ""
        solved = "" if threshold is None else f", solved at {threshold:g}"
        lines = [
            ("config", f"{config.name}, seed {config.train.seed}{again}"),
            ("env", f"{config.env.id}: {about.envs}{solved}"),
            ("model", _model(trainer)),
            ("algo", f"{config.algo.id}: {plan.n_envs} × {plan.n_steps} steps per iteration"),
            ("budget", f"{plan.env_steps:,} env steps ({plan.vec_steps:,} vec steps)"),
            *summary_of(config),
            *_scheduled(config),
            ("device", f"{about.device} ({about.reasons['train.device']})"),
        ]
        if (origin := resolved.origins.get("env.vectorization", "")).startswith(AUTO):
            lines.insert(2, ("stepped", f"{config.env.vectorization}: {origin.removeprefix(AUTO)}"))
        if about.reset_every is not None:
            lines.append(
                (
                    "resume",
                    f"from every {about.reset_every:,} env steps, where all envs are reset: their state cannot be saved",
                )
            )
        if (origin := resolved.origins.get("env.n_envs", "")).startswith(AUTO):
            lines.insert(2, ("n_envs", origin.removeprefix(AUTO)))
        for name, text in lines:
            self.say(f"{name:>8}  {text}")
        for name, overrides in config.eval.env_settings.items():
            what = f"{name} differs" if name else "differs"
            for key, value in overrides.items():
                self.say(f"{'eval':>8}  {what} from training: {key} = {value}")
        if about.reset_every is not None and (cut := resets_cut_episodes(config)):
            self.warn(f"These envs cannot be saved, and {cut}. Longer episodes never end during training.")

    def transferred(self, transfer: Transfer) -> None:
        """What the run begins with."""
        for line in transfer.lines():
            self.say(line)
        for note in transfer.notes:
            self.warn(note)

    # ---- during ----------------------------------------------------------------------------------------------------

    @contextmanager
    def display(self, catalogue: Catalogue, config: RunConfig, run_id: str) -> Iterator[None]:
        """The live table, or plain lines without a terminal; nothing with --quiet."""
        if self.quiet or self.console is None:
            yield
            return
        from gymnast.metrics.goal import subject_of
        from gymnast.metrics.table import open_display

        with open_display(
            self.console,
            catalogue,
            config.name,
            run_id=run_id,
            interval=config.log.interval,
            subject=subject_of(config, catalogue),
            all_metrics=config.log.all_metrics,
        ) as display:
            self._display = display
            try:
                yield
            finally:
                self._display = None

    def update(self, history: History, now: float, marks: Mapping[str, Mark] | None = None) -> None:
        """Redraw when it is time; `marks` are shown in the rows of their metrics."""
        if self._display is not None:
            self._display.update(history, now, marks)

    @contextmanager
    def activity(self, description: str, total: int) -> Iterator[Callable[[int], None] | None]:
        """Progress of something that holds training up."""
        if self.quiet or self.console is None:
            yield None
            return
        from gymnast.metrics.table import progress

        with progress(self.console, description, total) as bar:
            yield bar.update

    def evaluated(self, env_steps: int, evaluation: Evaluation, verdict: Verdict | None) -> None:
        """One line per evaluation."""
        solved = verdict is not None and verdict.solved
        score = evaluation.sentence(None if verdict is None else verdict.threshold)
        mark = " — solved" if solved else ""
        self.say(f"eval at {env_steps:,} env steps: {score}{mark}", style="green" if solved else None)
        for name, other in evaluation.others.items():
            self.say(f"     under {name}: {other.sentence()}")

    # ---- after -----------------------------------------------------------------------------------------------------

    def result(self, result: TrainResult) -> None:
        """How the run ended, as soon as that is known."""
        style = "bold green" if result.solved else "bold"
        self.say(always=True)
        for line in result.scores():
            self.say(line, style=style, always=True)
        rate = result.env_steps / max(result.seconds, 1e-9)
        # What solved the env may be the weights of an earlier step, so the end says only where training stood.
        end = "stopped" if result.stop_reason == SOLVED else result.stop_reason
        self.say(
            f"{end} after {result.env_steps:,} env steps ({result.vec_steps:,} vec steps) "
            f"in {_duration(result.seconds)}, {rate:,.0f} steps/s",
            always=True,
        )
        if self.console is not None:
            self.console.file.flush()

    def finished(self, result: TrainResult, timer: StageTimer) -> None:
        """Where everything lies, and the next commands to type."""
        shares = sorted(timer.split().items(), key=lambda item: -item[1])
        self.say("time: " + ", ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.005))
        self.say(f"run {result.run.id} in {result.run.folder}", always=True)
        made = [path for path in (result.run.videos / "best.mp4", result.run.folder / "report.html") if path.exists()]
        if result.unshown is not None and result.unshown.config.log.video:
            self.say(f"{'film':>6}  {result.run.videos / 'best.mp4'}, in a moment")
            made = made[-1:]
        for path in made:
            self.say(f"{path.stem:>6}  {path}")
        if result.interrupted:
            self._ways_to_go_on(result)
            return
        last = "@last"
        if result.run.reference != result.run.id:
            last = result.run.typed
        ways = [
            (f"gymnast video {last}", "watch it"),
            (f"gymnast eval {last}", "evaluate again on fresh episodes"),
            (f"gymnast runs show {last}", "metrics and checkpoints"),
            (f"gymnast resume {last} -n {2 * result.env_steps}", "train on"),
        ]
        if result.alerts:
            number = "1 alert" if result.alerts == 1 else f"{result.alerts} alerts"
            ways.insert(0, (f"gymnast diagnose {last}", f"{number}: what went wrong, and what to change"))
        self.say()
        self.say("Next:")
        width = max(len(command) for command, _ in ways)
        for command, why in ways:
            self.say(f"  {command:<{width}}   {why}")
        if self.console is not None:
            self.console.file.flush()

    def _ways_to_go_on(self, result: TrainResult) -> None:
        """Name the commands that continue an interrupted run."""
        command = f"gymnast resume {result.run.typed}"
        if result.weights_at is None:
            self.say(f"\nGo on with:  {command}", always=True)
            return
        self.say(
            f"\nGo on with:  {command}             exactly, from env step {result.env_steps:,}, where all envs were reset",
            always=True,
        )
        self.say(
            f"       or:  {command} --inexact   from the newest weights, at env step {result.weights_at:,}, with fresh episodes",
            always=True,
        )


def _scheduled(config: RunConfig) -> list[tuple[str, str]]:
    """The hyperparameters whose course a larger or smaller budget changes."""
    courses = over_the_budget(dict(config.algo))
    words = ", ".join(f"{name} {course}" for name, course in courses.items())
    if courses:
        return [("schedule", f"{words} by the end of this budget")]
    return []


def _model(trainer: Trainer) -> str:
    """`nature CNN, 512 features, bf16 (why), linear heads, 1,687,719 parameters`, or the layers alone without images."""
    config, policy = trainer.config.policy, trainer.policy
    parameters = f"{sum(p.numel() for p in policy.parameters()):,} parameters"
    if not isinstance(policy, ActorCritic):
        return f"{config.id}, {parameters}"
    hidden = "×".join(map(str, config.hidden))
    layers = f"{config.activation} {hidden}" if hidden else "linear"
    if config.memory != "none":
        layers = f"{config.memory} {'×'.join([str(config.memory_size)] * config.memory_layers)}, {layers}"
    if config.encoder is not None:
        return f"{config.encoder}, {policy.encoder.size} features, {layers} heads, {parameters}"
    if not policy.encoder.nets:
        return f"{layers}, {'shared trunk' if policy.shared else 'separate trunks'}, {parameters}"
    if config.cnn == "auto":
        kind = "nature"
    elif isinstance(config.cnn, str):
        kind = config.cnn
    else:
        kind = f"{len(config.cnn)}-layer"
    why = trainer.about.reasons.get("policy.precision", "as configured")
    precision: str = config.precision
    if why != "as configured":
        precision += f" ({why})"
    behind = f"{layers} shared trunk" if policy.trunk is not None else f"{layers} heads"
    return f"{kind} CNN, {policy.encoder.nets[0].size} features, {precision}, {behind}, {parameters}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{rest:02d} h"
    return f"{minutes}:{rest:02d} min"
