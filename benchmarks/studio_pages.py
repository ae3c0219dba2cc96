"""What a browser sees of a page, with its times: first content, a chart that answers, frames, scrubbing, news."""

from __future__ import annotations

import contextlib
import io
import random
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from typing import Any

import numpy as np
from PIL import Image
from studio_stores import rows, started_run

from gymnast.metrics.sinks.jsonl import JsonlSink

SIZE = {"width": 1360, "height": 860}
PATIENCE = 180.0
DRAWN_PIXELS = 150
"""Coloured pixels of a chart from which a curve is there: axes and texts are grey."""
COLOURED = 60
"""Between the largest and the smallest channel of a coloured pixel."""
CHANGED_SHARE = 0.004
"""Of a chart's pixels, from which a drag has changed it."""
JUMPS = 200
PANS = 90
NEWS = 12
SEEN_AT = """([name, text]) => new Promise((seen) => {
  const look = () => {
    const card = [...document.querySelectorAll("figure.card")].find((one) => one.textContent.includes(name));
    if (card?.querySelector("output")?.textContent === text) seen(Date.now() / 1000);
    else requestAnimationFrame(look);
  };
  look();
})"""
SCRUB = """(steps) => new Promise(async (done) => {
  const slider = document.querySelector("input[aria-label=Step]");
  const video = document.querySelector("video.game");
  const times = [];
  for (const step of steps) {
    const began = performance.now();
    slider.value = step;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((shown) => {
      const look = () => {
        if (video.dataset.frame === String(step)) requestAnimationFrame(() => shown());
        else setTimeout(look, 0);
      };
      look();
    });
    times.push(performance.now() - began);
  }
  done(times);
})"""
FRAMES = """() => {
  window.moments = [];
  const next = (at) => { window.moments.push(at); window.waiting = requestAnimationFrame(next); };
  window.waiting = requestAnimationFrame(next);
}"""


class Page:
    """A page in a context of its own, with the bytes that came over the wire."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self._bytes = 0.0
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.loadingFinished", self._count)

    def _count(self, event: dict[str, Any]) -> None:
        self._bytes += event["encodedDataLength"]

    def weight(self) -> float:
        """Bytes so far, compressed as they came."""
        return self._bytes


@contextlib.contextmanager
def page_of(browser: Any) -> Iterator[Page]:
    """A fresh page without a cache."""
    context = browser.new_context(viewport=SIZE)
    try:
        yield Page(context.new_page())
    finally:
        context.close()


def opened(page: Page, address: str, selector: str) -> float:
    """Seconds until something on a page is there."""
    began = time.perf_counter()
    page.page.goto(address, wait_until="commit")
    page.page.wait_for_selector(selector, state="attached", timeout=1000 * PATIENCE)
    return time.perf_counter() - began


def answers_to_a_drag(page: Page, address: str, chart: str, began: float) -> float:
    """Seconds from the tool's start until its first chart shows a curve and a drag across it changes the picture.

    A page that has nothing to show yet is loaded again after a while, as a person does.
    """
    while time.perf_counter() - began < PATIENCE:
        page.page.goto(address, wait_until="commit")
        box = _drawn(page, chart)
        if box is not None:
            break
    else:
        raise SystemExit(f"{address} showed no curve within {PATIENCE:.0f} s.")
    before = _pixels(page, box)
    left, width, middle = box["x"], box["width"], box["y"] + box["height"] / 2
    mouse = page.page.mouse
    mouse.move(left + 0.4 * width, middle)
    mouse.down()
    mouse.move(left + 0.6 * width, middle + 1, steps=3)
    mouse.up()
    mouse.move(2, 2)
    while time.perf_counter() - began < PATIENCE:
        if (np.abs(_pixels(page, box) - before).max(-1) > COLOURED).mean() > CHANGED_SHARE:
            return time.perf_counter() - began
    raise SystemExit(f"A drag changed nothing at {address}.")


def _drawn(page: Page, chart: str, patience: float = 8.0) -> dict[str, float] | None:
    """Where the first chart is, once a curve is in it."""
    end = time.perf_counter() + patience
    while time.perf_counter() < end:
        place = page.page.locator(chart).first
        box = place.bounding_box() if place.count() else None
        if box and box["width"] > 100 and box["height"] > 60:
            pixels = _pixels(page, box)
            if (pixels.max(-1) - pixels.min(-1) > COLOURED).sum() > DRAWN_PIXELS:
                return box
        time.sleep(0.02)
    return None


def _pixels(page: Page, box: dict[str, float]) -> np.ndarray:
    picture = page.page.screenshot(clip=box)
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(np.int16)


def frame_times(page: Page) -> float:
    """Milliseconds between two frames while a zoomed chart is panned by hand, 95 %."""
    box = page.page.locator("figure.card .u-over").first.bounding_box()
    left, width, y = box["x"], box["width"], box["y"] + 40
    mouse, keyboard = page.page.mouse, page.page.keyboard
    mouse.move(left + 0.4 * width, y)
    mouse.down()
    mouse.move(left + 0.6 * width, y, steps=3)
    mouse.up()
    page.page.wait_for_timeout(1000)  # the stretch's own points have come
    keyboard.down("Shift")
    mouse.move(left + 0.2 * width, y)
    mouse.down()
    page.page.evaluate(FRAMES)
    for step in range(PANS):
        mouse.move(left + (0.2 + 0.6 * step / PANS) * width, y)
    mouse.up()
    keyboard.up("Shift")
    moments = page.page.evaluate("() => { cancelAnimationFrame(window.waiting); return window.moments; }")
    return _p95([after - before for before, after in pairwise(moments)])


def live_delays(page: Page, base: str, root: Path, seed: int) -> float:
    """Seconds from the writing of a row to its number on the page, 95 %; rows come at any moment of the page's rhythm."""
    run, chance = started_run(root, seed), random.Random(seed)
    delays = []
    with JsonlSink(run.metrics_path, rows(1, 0)[0]) as sink:
        made = iter(rows(NEWS + 1, seed))
        sink.write(next(made))
        opened(page, f"{base}/runs/{run.id}", "figure.card .u-over")
        for number, row in enumerate(made):
            time.sleep(0.5 + chance.random())
            value = 1000 + number
            sink.write({**row, "rollout/return_mean": float(value)})
            written = time.time()
            delays.append(page.page.evaluate(SEEN_AT, ["rollout/return_mean", f"{value:,}"]) - written)
    run.finish("finished", "budget spent", env_steps=64, wall_seconds=1.0)
    return _p95(delays)


def first_picture(page: Page, address: str) -> float:
    """Seconds until an episode's first picture is on the page."""
    began = time.perf_counter()
    page.page.goto(address, wait_until="commit")
    page.page.wait_for_function("() => document.querySelector('video.game')?.readyState >= 2", timeout=1000 * PATIENCE)
    return time.perf_counter() - began


def scrub_times(page: Page, chance: random.Random) -> float:
    """Milliseconds from the slider's move to the frame in which its picture is shown, 95 % of jumps to anywhere."""
    last = int(page.page.get_by_label("Step", exact=True).get_attribute("max"))
    return _p95(page.page.evaluate(SCRUB, [chance.randrange(last + 1) for _ in range(JUMPS)]))


def _p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1]
