"""A report as one HTML file: curves, videos and all else inside it, and nothing of it runs or is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from gymnast.metrics.charts.page import grid, whole
from gymnast.metrics.drawing import clock
from gymnast.metrics.verdict import shown
from gymnast.runs.report import words
from gymnast.runs.report.facts import Film, Report

COLOURS = {"solved": "good", "learning": "good", "stuck": "warn", "broken": "bad", "unknown": "soft"}
SEVERITIES = {"error": "bad", "warning": "warn", "info": "soft"}
MOST_CAUSES = 3


def of_report(report: Report) -> str:
    """The whole page."""
    parts = [_head(report), _results(report), _films(report)]
    if report.charts:
        parts.append(f"<h2>Curves</h2>\n{grid(report.charts)}")
    parts += [_alerts(report), _causes(report), _settings(report), _time(report), _next(report)]
    return whole(f"{report.name} · {report.run}", "\n".join(part for part in parts if part))


def _head(report: Report) -> str:
    status, health = report.status, report.diagnosis.health
    lines = [
        f"<h1>{escape(report.name or 'run')} <span class='soft'>· {escape(report.run)}</span></h1>",
        f"<p><strong class='{COLOURS[health]}'>{escape(health)}.</strong> {escape(words.headline(report))}</p>",
        f"<p class='soft'>{escape(words.ending(report))} · {escape(status.created[:16].replace('T', ' '))} UTC</p>",
    ]
    if report.ancestors:
        lines.append(f"<p class='soft'>began with weights of {escape(' ← '.join(report.ancestors))}</p>")
    return "\n".join(lines)


def _results(report: Report) -> str:
    cards = []
    for one in report.scored:
        interval = "exact expectation"
        if one.exact is None:
            ends = one.interval
            spread = "" if ends is None else f"95 % interval {ends[0]:.4g} to {ends[1]:.4g}, "
            interval = f"{spread}{one.episodes} episodes"
        cards.append(
            _card(f"{one.label}, at {one.vec_steps:,} vec steps", shown(one.score, report.threshold), interval)
        )
    if report.threshold is not None:
        cards.append(_card("solved at", shown(report.threshold), "mean return"))
    status = report.status
    if status.efficiency is not None:
        cards.append(_card("efficiency", f"{status.efficiency:.2f}", "0 is random play, 1 is solved from the start"))
    if status.vec_steps_to_solved is not None and status.seconds_to_solved is not None:
        steps = f"{status.vec_steps_to_solved:,}"
        cards.append(_card("vec steps to solved", steps, f"{clock(status.seconds_to_solved)} of training"))
    numbers = f"<div class='numbers'>{''.join(cards)}</div>" if cards else ""
    numbers += _by_parameter(report) + _stages(report)
    return numbers if report.scored else f"{numbers}<p>No evaluation has ended yet.</p>"


def _by_parameter(report: Report) -> str:
    """A table of the last evaluation by what was drawn for its episodes."""
    if not report.by_parameter:
        return ""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{'no episode' if value is None else escape(shown(value))}</td></tr>"
        for name, value in report.by_parameter
    )
    return f"<table><tr><th>drawn for the episode</th><th>mean return</th></tr>{rows}</table>"


def _stages(report: Report) -> str:
    """Scores on all stages of a plan at the end of each."""
    if not report.stages:
        return ""
    head, *scores = report.stages
    return "<h2>Stages</h2>" + _table(head, scores)


def _card(name: str, value: str, note: str) -> str:
    return (
        f"<div class='card'><div class='soft'>{escape(name)}</div><div class='big'>{escape(value)}</div>"
        f"<div class='soft'>{escape(note)}</div></div>"
    )


def _films(report: Report) -> str:
    if not report.films:
        return ""
    return f"<h2>Videos</h2><div class='grid'>{''.join(map(_film, report.films))}</div>"


def _film(film: Film) -> str:
    source = f"videos/{film.name}" if film.data is None else f"data:video/mp4;base64,{film.data}"
    return (
        f"<div class='card'><video controls muted loop playsinline preload='metadata' src='{escape(source)}'></video>"
        f"<p class='soft'>{escape(words.film_text(film))}</p></div>"
    )


def _alerts(report: Report) -> str:
    if not report.diagnosis.alerts:
        return "<h2>Alerts</h2><p>None.</p>"
    parts = ["<h2>Alerts</h2>"]
    for alert in report.diagnosis.alerts:
        advice = "".join(f"<li>{escape(one)}</li>" for one in alert.advice)
        steps = f"{alert.count:,} rows, env steps {alert.first_step:,} to {alert.last_step:,}"
        parts.append(
            f"<p><strong class='{SEVERITIES[alert.severity]}'>{escape(alert.severity)} {escape(alert.id)}</strong> "
            f"{escape(alert.message)} <span class='soft'>{escape(alert.means)} ({steps})</span></p>"
            f"<ul>{advice}<li>look at the update: <code>{escape(alert.rewind(report.diagnosis.reference))}</code></li></ul>"
        )
    return "\n".join(parts)


def _causes(report: Report) -> str:
    found = report.diagnosis.causes[:MOST_CAUSES]
    items = "".join(
        f"<li><strong>{escape(one.cause.title)}</strong> ({one.confidence:.0%}). {escape(one.cause.why)}</li>"
        for one in found
    )
    if items:
        return f"<h2>Likely causes</h2><ol>{items}</ol>"
    return ""


def _settings(report: Report) -> str:
    if report.settings_note:
        return f"<h2>Settings</h2><p>{escape(report.settings_note)}</p>"
    if not report.settings:
        return f"<h2>Settings</h2><p>All as in the preset {escape(report.name)}.</p>"
    return "<h2>Settings that differ from the preset</h2>" + _table(("key", "preset", "run"), report.settings)


def _time(report: Report) -> str:
    rows = [(part, f"{share:.1%}", clock(share * report.status.wall_seconds)) for part, share in report.time_split]
    if rows:
        return "<h2>Time</h2>" + _table(("stage", "share", "time"), rows)
    return ""


def _next(report: Report) -> str:
    blocks = [
        f"<p class='soft'>{escape(why)}</p><pre>{escape(command)}</pre>" for command, why in words.next_commands(report)
    ]
    return f"<h2>Next</h2>{''.join(blocks)}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{escape(one)}</th>" for one in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='wide'><table><tr>{titles}</tr>{lines}</table></div>"
