"""What is drawn is where the numbers say: read back from SVG, from terminal cells, and from a decoded PNG."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pygame
import pytest

from gymnast.metrics.charts import figure, page, svg
from gymnast.metrics.charts.chart import Chart, Line, ticks
from gymnast.metrics.charts.terminal import drawn

SVG = "{http://www.w3.org/2000/svg}"


def chart_of(*lines: Line, threshold: float | None = None, title: str = "return") -> Chart:
    return Chart(title, "vec steps", "reward", lines, threshold, "solved" if threshold is not None else "")


def line_of(y: list[float], label: str = "run", colour: int = 0) -> Line:
    return Line(label, np.arange(len(y), dtype=float), np.array(y, float), colour=colour)


def test_ticks_are_round_and_inside() -> None:
    found = ticks(0.0, 500.0, 5)
    assert found.labels == ("0", "100", "200", "300", "400", "500")
    assert ticks(0, 120_000, 4).labels == ("0", "50k", "100k")
    assert ticks(-1.3e6, 2e6, 4).labels == ("-1M", "0", "1M", "2M")
    assert ticks(0.012, 0.05, 4).labels == ("0.02", "0.03", "0.04", "0.05")
    assert ticks(1e-7, 9e-7, 3).labels[0].endswith("e-07")
    rng = np.random.default_rng(0)
    for _ in range(300):
        low, span = rng.normal() * 10 ** rng.uniform(-6, 9), 10 ** rng.uniform(-6, 9)
        found = ticks(low, low + span, 6)
        assert 1 <= len(found.places) <= 8
        assert all(low - 1e-6 * span <= place <= low + span * (1 + 1e-6) for place in found.places)
    assert ticks(3.0, 3.0, 5).labels == ("3",)


def _points(text: str) -> np.ndarray:
    return np.array([[float(one) for one in pair.split(",")] for pair in text.split()])


def test_svg_places_points_by_their_values() -> None:
    """Heights in the picture are a straight function of the values, also of bands and of the threshold."""
    values = [0.0, 100.0, 50.0, 300.0]
    line = line_of(values)
    banded = Line("seeds", line.x, line.y, line.y - 20, line.y + 20, colour=1)
    root = ET.fromstring(svg.document([chart_of(line, banded, threshold=200.0)]))
    curves = [_points(one.get("points", "")) for one in root.iter(f"{SVG}polyline")]
    scale = np.polyfit(values, curves[0][:, 1], 1)
    assert scale[0] < 0
    np.testing.assert_allclose(np.polyval(scale, values), curves[0][:, 1], atol=0.1)
    np.testing.assert_allclose(np.diff(curves[0][:, 0]), np.diff(curves[0][:, 0])[0], atol=0.11)
    (band,) = [_points(one.get("points", "")) for one in root.iter(f"{SVG}polygon")]
    np.testing.assert_allclose(band[:4, 1], np.polyval(scale, line.y + 20), atol=0.1)
    np.testing.assert_allclose(band[4:, 1], np.polyval(scale, (line.y - 20)[::-1]), atol=0.1)
    dashed = [one for one in root.iter(f"{SVG}line") if one.get("stroke-dasharray") and one.get("x1") != "14.0"]
    assert float(dashed[0].get("y1", "nan")) == pytest.approx(float(np.polyval(scale, 200.0)), abs=0.1)
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert {"return", "vec steps", "reward", "run", "seeds", "solved", "300"} <= set(texts)


def test_gaps_and_hostile_names() -> None:
    line = Line("</svg><script>alert(1)</script>", np.arange(3.0), np.array([1.0, np.nan, 2.0]))
    text = svg.document([chart_of(line, title='a<b>&"c')])
    root = ET.fromstring(text)
    assert len(_points(next(root.iter(f"{SVG}polyline")).get("points", ""))) == 2
    assert not list(root.iter("script")) and "<script" not in text
    html = page.of_charts([chart_of(line)], "x<y>")
    assert "<script" not in html and not re.search(r"(src|href)=[\"']?(?!data:)", html)


def _cells(chart: Chart, width: int = 60, *, utf8: bool = True) -> list[str]:
    return ["".join(segment.text for segment in line) for line in drawn(chart, width, utf8=utf8).lines]


def test_terminal_shows_the_peak_where_it_is() -> None:
    values = [0.0] * 41
    values[30] = 100.0
    rows = _cells(chart_of(line_of(values)))
    assert rows[0] == "return"
    plot = [row.split("│", 1)[1] for row in rows[1:] if "│" in row]
    assert len({len(row) for row in plot}) == 1
    top = next(row for row in plot if row.strip())
    column = len(top) - len(top.lstrip())
    assert column == pytest.approx(30 / 40 * (len(top) - 1), abs=1)
    assert all(len(row) <= 60 for row in rows)
    ascii_rows = _cells(chart_of(line_of(values, "Größe"), threshold=5.0, title="return · Env-v1"), utf8=False)
    assert "".join(ascii_rows).isascii() and any("*" in row for row in ascii_rows)


def test_charts_of_nothing_but_one_point() -> None:
    for chart in (chart_of(line_of([5.0])), chart_of(line_of([2.0, 2.0, 2.0]), threshold=2.0)):
        ET.fromstring(svg.document([chart]))
        assert _cells(chart)
        low, high = chart.y_range()
        assert low < chart.lines[0].y[0] < high


def test_png_has_the_colours_of_its_lines() -> None:
    file = io.BytesIO()
    figure.draw([chart_of(line_of([0, 3, 1]), line_of([1, 1, 2], "other", 1), threshold=2.0)], file, ".png")
    file.seek(0)
    pixels = pygame.surfarray.array3d(pygame.image.load(file, "c.png")).reshape(-1, 3).astype(int)
    for colour in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)):
        assert (np.abs(pixels - colour).max(axis=1) < 12).sum() > 200


def test_without_matplotlib_the_install_line_is_told() -> None:
    code = (
        "import sys, io; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "from gymnast.metrics.charts import figure\n"
        "try: figure.draw([], io.BytesIO(), '.png')\n"
        "except Exception as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 'pip install "gymnast[plots]"' in said
