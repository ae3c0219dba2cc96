"""A report as Markdown, with its curves as text: for people, for notes, and for language models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gymnast.metrics.alerts.alert import Alert
from gymnast.metrics.catalogue import load_catalogue
from gymnast.metrics.drawing import sparkline
from gymnast.metrics.verdict import shown
from gymnast.runs.report import words
from gymnast.runs.report.facts import Report

MOST_CAUSES = 3


def of_report(report: Report) -> str:
    """The whole page."""
    parts = [_head(report), _results(report), _curves(report), _alerts(report), _causes(report)]
    parts += [_settings(report), _time(report), _films(report), _next(report)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(report: Report) -> str:
    lines = [f"# {_plain(report.name or 'run')} · {report.run}", ""]
    lines += [
        f"**{report.diagnosis.health}.** {_plain(words.headline(report))}",
        "",
        _plain(words.ending(report)) + ".",
    ]
    if report.ancestors:
        lines += ["", f"It began with weights of {_plain(' ← '.join(report.ancestors))}."]
    return "\n".join(lines)


def _results(report: Report) -> str:
    if not report.scored:
        return "## Result\n\nNo evaluation has ended yet."
    rows = [
        (one.label, words.score_text(one, report.threshold), f"{one.std:.4g}", str(one.episodes), f"{one.vec_steps:,}")
        for one in report.scored
    ]
    text = "## Result\n\n" + _table(("evaluation", "return", "std", "episodes", "vec steps"), rows)
    if report.threshold is not None:
        text += f"\n\nSolved at {shown(report.threshold)}."
    if report.by_parameter:
        parts = [(name, _number(value)) for name, value in report.by_parameter]
        text += "\n\nThe last evaluation by what was drawn for its episodes:\n\n" + _table(
            ("parameter", "return"), parts
        )
    if report.stages:
        head, *scores = report.stages
        text += "\n\nScores on all stages at the end of each; the last row is what was forgotten or gained since:\n\n"
        text += _table(head, scores)
    extra = [f"- {name}: {value}" for name, value in words.quality(report)]
    return text + ("\n\n" + "\n".join(extra) if extra else "")


def _number(value: float | None) -> str:
    if value is None:
        return "no episode"
    return shown(value)


def _curves(report: Report) -> str:
    if not report.diagnosis.charts:
        return ""
    catalogue = load_catalogue()
    rows = [
        (
            f"`{chart.metric}`",
            f"`{sparkline(chart.points)}`",
            catalogue.format(chart.metric, chart.first),
            catalogue.format(chart.metric, chart.last),
        )
        for chart in report.diagnosis.charts
    ]
    return "## Curves\n\n" + _table(("metric", "over the run", "first", "last"), rows)


def _alerts(report: Report) -> str:
    found = [alert for alert in report.diagnosis.alerts if alert.severity != "info"]
    if not found:
        return "## Alerts\n\nNone."
    return "## Alerts\n\n" + "\n".join(_alert(alert, report.diagnosis.reference) for alert in found)


def _alert(alert: Alert, run: str) -> str:
    lines = [f"- **{alert.severity} {alert.id}**: {_plain(alert.message)} {_plain(alert.means)}"]
    lines += [f"  - {_plain(advice)}" for advice in alert.advice]
    return "\n".join([*lines, f"  - look at the update: `{alert.rewind(run)}`"])


def _causes(report: Report) -> str:
    found = report.diagnosis.causes[:MOST_CAUSES]
    if not found:
        return ""
    lines = [f"{n}. **{one.cause.title}** ({one.confidence:.0%}): {one.cause.why}" for n, one in enumerate(found, 1)]
    return "## Likely causes\n\n" + "\n".join(lines)


def _settings(report: Report) -> str:
    if report.settings_note:
        return f"## Settings\n\n{_plain(report.settings_note)}"
    if not report.settings:
        return f"## Settings\n\nAll as in the preset {_plain(report.name)}."
    rows = [(f"`{key}`", _plain(there), _plain(here)) for key, there, here in report.settings]
    return "## Settings that differ from the preset\n\n" + _table(("key", "preset", "run"), rows)


def _time(report: Report) -> str:
    if not report.time_split:
        return ""
    return "## Time\n\n" + ", ".join(f"{part} {share:.0%}" for part, share in report.time_split) + "."


def _films(report: Report) -> str:
    if not report.films:
        return ""
    lines = [f"- [videos/{film.name}](videos/{film.name}): {_plain(words.film_text(film))}" for film in report.films]
    return "## Videos\n\n" + "\n".join(lines)


def _next(report: Report) -> str:
    lines = [f"# {why}\n{command}" for command, why in words.next_commands(report)]
    return "## Next\n\n```\n" + "\n".join(lines) + "\n```"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def _plain(text: str) -> str:
    """Text of a run in one line, without anything that Markdown would take for HTML."""
    return " ".join(text.split()).replace("<", "&lt;").replace("`", "'")
