"""Charts as a web page that needs nothing else: no script, no font and no request leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gymnast.metrics.charts import svg
from gymnast.metrics.charts.chart import Chart

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1d2129; --soft: #5b6472; --line: #dfe3e8; --card: #f7f8fa;
        --good: #15803d; --warn: #a16207; --bad: #b91c1c; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171c; --ink: #e6e9ee; --soft: #9aa4b2; --line: #2c323b; --card: #1b1f26;
          --good: #4ade80; --warn: #facc15; --bad: #f87171; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 28px 20px 60px; background: var(--paper); color: var(--ink);
       font: 15px/1.5 system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 34px 0 10px; }
p { margin: 6px 0; } .soft { color: var(--soft); }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 14px; }
.numbers { display: flex; flex-wrap: wrap; gap: 12px; margin-top: 16px; } .numbers .card { flex: 1 1 170px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 12px; }
svg.chart { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
td, th { text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; color: var(--soft); } td.number { text-align: right; font-variant-numeric: tabular-nums; }
code, pre { font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; overflow-x: auto; }
.big { font-size: 30px; font-weight: 650; }
.good { color: var(--good); } .warn { color: var(--warn); } .bad { color: var(--bad); }
video { max-width: 100%; border-radius: 8px; border: 1px solid var(--line); }
@media (max-width: 520px) { .grid { grid-template-columns: 1fr; } }
""".strip()


def of_charts(charts: Sequence[Chart], title: str) -> str:
    """A page of charts alone."""
    return whole(title, f"<h1>{escape(title)}</h1>\n{grid(charts)}")


def grid(charts: Sequence[Chart]) -> str:
    """Charts side by side, as many as fit."""
    cards = "\n".join(f'<div class="card">{svg.inline(chart)}</div>' for chart in charts)
    return f'<div class="grid">\n{cards}\n</div>'


def whole(title: str, content: str) -> str:
    """A page around its content, which is HTML already. Its policy keeps it from loading or running anything."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data: 'self'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style></head>\n<body>\n{content}\n</body></html>\n"
    )
