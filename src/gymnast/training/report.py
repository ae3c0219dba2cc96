"""What a person sees of a run: the summary before it, the live table during it, the result after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from gymnast.config.load import Resolved
from gymnast.config.plan import AUTO
from gymnast.config.schema import RunConfig
from gymnast.evaluation.evaluate import Evaluation
from gymnast.metrics.catalogue import Catalogue
from gymnast.metrics.history import History
from gymnast.redaction import redact
from gymnast.timing import StageTimer

if TYPE_CHECKING:
    from rich.console import Console

    from gymnast.training.loop import TrainResult
    from gymnast.training.session import Session
    from gymnast.training.transfer import Transfer


class Reporter:
    """Prints to the terminal and, without colour codes, to the run's log."""

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self.console = console
        self.quiet = quiet or console is None
        self._log: TextIO | None = None
        self._log_room = 0
        self._waiting: list[str] = []
        self._display: Any = None

    # ---- text ------------------------------------------------------------------------------------------------------

    def say(self, text: str = "", *, style: str | None = None, always: bool = False) -> None:
        """One paragraph to terminal and log, without secrets."""
        text = redact(text)
        if self.console is not None and (always or not self.quiet):
            self.console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)
        self._to_log(text)

    def warn(self, text: str) -> None:
        """Something the user should know, shown even when quiet."""
        self.say(f"warning: {text}", style="yellow", always=True)

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
        self._log = path.open("a", encoding="utf-8")
        self._log_room = max_bytes - path.stat().st_size
        for text in self._waiting:
            self._to_log(text)
        self._waiting.clear()

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            with suppress(OSError):  # what a full disk did not take is tried again here
                self._log.close()
            self._log = None

    # ---- before ----------------------------------------------------------------------------------------------------

    def summary(self, session: Session, resolved: Resolved, resumed: str | None) -> None:
        """Config, env, model and device, before the first step."""
        config, plan = session.config, session.plan
        for notice in resolved.notices:
            self.say(notice, style="yellow", always=True)
        threshold = config.spec.solved_at
        from gymnast.envs.choose import choose_vectorization, under_debugger

        if under_debugger():
            self.say(f"A debugger is attached: envs are stepped {choose_vectorization(config.env)[0]}.", style="yellow")
        lines = [
            ("config", f"{config.name}, seed {config.train.seed}" + (f", resuming run {resumed}" if resumed else "")),
            (
                "env",
                f"{config.env.id}: {session.envs.describe()}"
                + (f", solved at {threshold:g}" if threshold is not None else ""),
            ),
            ("model", _model(session)),
            ("algo", f"{config.algo.id}: {plan.n_envs} × {plan.n_steps} steps per iteration"),
            ("budget", f"{plan.env_steps:,} env steps ({plan.vec_steps:,} vec steps)"),
            ("device", f"{session.device} ({session.reasons['train.device']})"),
        ]
        if (origin := resolved.origins.get("env.vectorization", "")).startswith(AUTO):
            lines.insert(2, ("stepped", f"{config.env.vectorization}: {origin.removeprefix(AUTO)}"))
        if session.reset_every is not None:
            steps = session.reset_every * plan.n_envs * plan.n_steps
            lines.append(
                ("resume", f"from every {steps:,} env steps, where all envs are reset: their state cannot be saved")
            )
        if (origin := resolved.origins.get("env.n_envs", "")).startswith(AUTO):
            lines.insert(2, ("n_envs", origin.removeprefix(AUTO)))
        for name, text in lines:
            self.say(f"{name:>8}  {text}")
        for key, value in config.eval.env.items():
            self.say(f"{'eval':>8}  differs from training: {key} = {value}")

    def transferred(self, transfer: Transfer) -> None:
        """What the run begins with."""
        for line in transfer.lines():
            self.say(line)
        for note in transfer.notes:
            self.warn(note)

    # ---- during ----------------------------------------------------------------------------------------------------

    @contextmanager
    def display(self, catalogue: Catalogue, config: RunConfig, run_id: str) -> Iterator[None]:
        """The live table, or plain lines where there is no terminal; nothing when quiet."""
        if self.quiet or self.console is None:
            yield
            return
        from gymnast.metrics.table import open_display

        with open_display(self.console, catalogue, config.name, run_id=run_id, interval=config.log.interval) as display:
            self._display = display
            try:
                yield
            finally:
                self._display = None

    def update(self, history: History, now: float) -> None:
        """Redraw when it is time."""
        if self._display is not None:
            self._display.update(history, now)

    @contextmanager
    def activity(self, description: str, total: int) -> Iterator[Callable[[int], None] | None]:
        """Progress of something that holds training up."""
        if self.quiet or self.console is None:
            yield None
            return
        from gymnast.metrics.table import progress

        with progress(self.console, description, total) as bar:
            yield bar.update

    def evaluated(self, env_steps: int, evaluation: Evaluation, solved: bool) -> None:
        """One line per evaluation."""
        mark = " — solved" if solved else ""
        self.say(f"eval at {env_steps:,} env steps: {evaluation.sentence()}{mark}", style="green" if solved else None)

    # ---- after -----------------------------------------------------------------------------------------------------

    def finished(self, result: TrainResult, timer: StageTimer) -> None:
        """The result and the next commands to type."""
        style = "bold green" if result.solved else "bold"
        self.say(always=True)
        if result.evaluation is not None:
            self.say(f"{result.evaluation.sentence()}", style=style, always=True)
        rate = result.env_steps / max(result.seconds, 1e-9)
        self.say(
            f"{result.stop_reason} after {result.env_steps:,} env steps ({result.vec_steps:,} vec steps) "
            f"in {_duration(result.seconds)}, {rate:,.0f} steps/s",
            always=True,
        )
        shares = sorted(timer.split().items(), key=lambda item: -item[1])
        self.say("time: " + ", ".join(f"{name} {share:.0%}" for name, share in shares if share >= 0.005))
        self.say(f"run {result.run.id} in {result.run.folder}", always=True)
        if result.interrupted:
            self.say(f"\nGo on with:  gymnast resume {result.run.id}", always=True)
            return
        self.say()
        self.say("Next:")
        self.say("  gymnast video @last            watch it")
        self.say("  gymnast eval @last             evaluate again on fresh episodes")
        self.say("  gymnast runs show @last        metrics and checkpoints")
        # A run that a rule ended would be ended by it again.
        further = " train.stop_when_solved=false" if result.stop_reason.startswith("solved") else ""
        self.say(f"  gymnast resume @last -n {2 * result.env_steps}{further}   train on")
        if self.console is not None:
            self.console.file.flush()


def _model(session: Session) -> str:
    """`nature CNN, 512 features, bf16 (why), linear heads, 1,687,719 parameters`, or the layers alone without images."""
    config, policy = session.config.policy, session.policy
    parameters = f"{sum(p.numel() for p in policy.parameters()):,} parameters"
    hidden = "×".join(map(str, config.hidden))
    layers = f"{config.activation} {hidden}" if hidden else "linear"
    if not policy.encoder.nets:
        return f"{layers}, {'shared trunk' if policy.shared else 'separate trunks'}, {parameters}"
    kind = (
        "nature" if config.cnn == "auto" else config.cnn if isinstance(config.cnn, str) else f"{len(config.cnn)}-layer"
    )
    why = session.reasons.get("policy.precision", "as configured")
    precision = config.precision + ("" if why == "as configured" else f" ({why})")
    behind = f"{layers} shared trunk" if policy.trunk is not None else f"{layers} heads"
    return f"{kind} CNN, {policy.encoder.nets[0].size} features, {precision}, {behind}, {parameters}"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d} h" if hours else f"{minutes}:{rest:02d} min"
