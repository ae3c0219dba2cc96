"""The command tree."""

from __future__ import annotations

import typer

from gymnast.cli import config, diff, doctor, eject, env, evaluate, export, model, rewind, runs, train

app = typer.Typer(
    name="gymnast",
    help="Train, watch, explain and compare reinforcement-learning agents on Gymnasium environments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: gymnast train CartPole-v1:ppo",
)
app.command("train")(train.train)
app.command("resume")(train.resume)
app.command("eval")(evaluate.evaluate)
app.command("video")(evaluate.video)
app.command("export")(export.export)
app.command("eject")(eject.eject)
app.command("model")(model.model)
app.command("diff")(diff.diff)
app.command("rewind")(rewind.rewind)
app.add_typer(config.app, name="config")
app.add_typer(env.app, name="env")
app.add_typer(runs.app, name="runs")
app.command("doctor")(doctor.doctor)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Train, watch, explain and compare reinforcement-learning agents on Gymnasium environments."""
    if show:
        from gymnast import __version__

        typer.echo(f"gymnast {__version__}")
        raise typer.Exit
