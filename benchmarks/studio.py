"""How fast the studio is: `python benchmarks/studio.py`, next to TensorBoard and Trackio on the same runs.

Interleaved, each tool: from its start to the first answer, bytes of the first page, and from its start until a curve of
100,000 points is drawn and answers to a drag (all tools zoom by one). Then the studio alone: first page and memory with
1,000 runs, an inspector's first picture, scrubbing, panning, and how late a page shows a row that was just written.
Bars (issue 20): first page ≤ 0.6 s, scrubbing p95 ≤ 33 ms, live update ≤ 2 s, memory ≤ 120 MB.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contestants import all_versions, gymnast
from harness import finish, interleave, ratio, spread, verdict
from harness import parser as make_parser
from process import busy_seconds, memory_mb
from studio_pages import answers_to_a_drag, first_picture, frame_times, live_delays, opened, page_of, scrub_times
from studio_stores import METRICS, PROJECT, make_many, make_stores

HOST = "127.0.0.1"
PORTS = {"gymnast": 7951, "tensorboard": 7952, "trackio": 7953}
PATIENCE = 180.0
PEERS = ("tensorboard", "trackio")


def commands(stores: dict[str, Path]) -> dict[str, list[str]]:
    """How each tool is started on its store."""
    show = (
        f"import trackio; trackio.show(project={PROJECT!r}, open_browser=False, block_thread=True, "
        f"host={HOST!r}, server_port={PORTS['trackio']})"
    )
    board = Path(sys.executable).with_name("tensorboard")
    ours = [*gymnast(), "studio", "--no-browser", "--port", str(PORTS["gymnast"]), "--runs-dir"]
    return {
        "gymnast": [*ours, str(stores["gymnast"])],
        "tensorboard": [str(board), "--logdir", str(stores["tensorboard"]), "--port", str(PORTS["tensorboard"])],
        "trackio": [sys.executable, "-c", show],
    }


@contextlib.contextmanager
def server(command: list[str], port: int, **changes: str) -> Iterator[tuple[subprocess.Popen[bytes], float, float]]:
    """A tool that answers: its process, when it was started, and the seconds until its first page."""
    env = {**os.environ, "HF_HUB_OFFLINE": "1", **changes}
    began = time.perf_counter()
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process, began, _until_answer(process, port, began)
    finally:
        process.terminate()
        process.wait(20)


def _until_answer(process: subprocess.Popen[bytes], port: int, began: float) -> float:
    while time.perf_counter() - began < PATIENCE:
        if process.poll() is not None:
            raise SystemExit(f"{process.args} ended with code {process.returncode}.")
        with contextlib.suppress(OSError, urllib.error.URLError):
            with urllib.request.urlopen(f"http://{HOST}:{port}/", timeout=5) as answer:
                answer.read()
            return time.perf_counter() - began
        time.sleep(0.005)
    raise SystemExit(f"{process.args} did not answer within {PATIENCE:.0f} s.")


def side_by_side(browser: Any, stores: dict[str, Path], ids: list[str]) -> dict[str, Callable[[int], dict[str, Any]]]:
    """The three tools as contestants. All show the same runs in the same charts."""
    started = commands(stores)
    shown = "&".join(f"run={name}" for name in ids)
    pattern = "|".join(METRICS)
    # Where the same curves of the same runs are, and the first chart there.
    places = {
        "gymnast": (f"/compare?{shown}&m={pattern}", ".chart .u-over"),
        "tensorboard": ("/#timeseries", "line-chart"),
        "trackio": (f"/?project={PROJECT}", "canvas"),
    }

    def contest(tool: str) -> dict[str, Any]:
        path, chart = places[tool]
        busy, cpu = busy_seconds(), time.perf_counter()
        with server(started[tool], PORTS[tool], TRACKIO_DIR=str(stores["trackio"])) as (process, began, first):
            with page_of(browser) as page:
                panned = answers_to_a_drag(page, f"http://{HOST}:{PORTS[tool]}{path}", chart, began)
                weight = page.weight()
            memory = memory_mb(process.pid)
        wall = time.perf_counter() - cpu
        # Chromium and the tool belong to the measurement, so neighbours cannot be told apart from them.
        return {"start": first, "pan_100k": panned, "page_kb": weight / 1000, "memory_mb": memory,
                "busy": (busy_seconds() - busy) / wall}  # fmt: skip

    return {tool: (lambda _, tool=tool: contest(tool)) for tool in started}


def alone(browser: Any, folder: Path, long: str) -> Callable[[int], dict[str, Any]]:
    """What only the studio is asked."""

    def measure(index: int) -> dict[str, Any]:
        port = PORTS["gymnast"]
        base = f"http://{HOST}:{port}"
        command = [*gymnast(), "studio", "--no-browser", "--port", str(port), "--runs-dir"]
        with server([*command, str(folder / "many")], port) as (process, _, first), page_of(browser) as page:
            listed = opened(page, f"{base}/", ".table .row .sparkline polyline")
            _see_all(base)
            memory = memory_mb(process.pid)
        with server([*command, str(folder / "gymnast")], port) as (_, _, _), page_of(browser) as page:
            loaded = opened(page, f"{base}/runs/{long}", "figure.card .u-over")
            panned = frame_times(page)
            delays = live_delays(page, base, folder / "gymnast", index)
        trained = _trained(folder / "trained")
        with server([*command, str(trained)], port) as (_, _, _), page_of(browser) as page:
            address = f"{base}/inspect/@last?seed={index}"
            cold = first_picture(page, address)
            warm = first_picture(page, address)
            scrubbed = scrub_times(page, random.Random(index))
        return {"first_page": first, "list_of_1000": listed, "memory_mb_1000": memory, "run_100k": loaded,
                "pan_frame_p95_ms": panned, "live_p95": delays, "picture_cold": cold, "picture_warm": warm,
                "scrub_p95_ms": scrubbed}  # fmt: skip

    return measure


def _see_all(base: str) -> None:
    """Ask for the courses of every run, as somebody does who scrolls through the whole list."""
    with urllib.request.urlopen(f"{base}/api/runs", timeout=60) as answer:
        ids = [row["id"] for row in json.load(answer)["runs"]]
    for start in range(0, len(ids), 60):
        asked = "&".join(f"run={name}" for name in ids[start : start + 60])
        with urllib.request.urlopen(f"{base}/api/glimpses?{asked}", timeout=60) as answer:
            answer.read()


def _trained(folder: Path) -> Path:
    """A store with one small trained run, made once."""
    root = folder / "runs"
    if not root.exists():
        settings = ["-n", "4096", "--quiet", "policy.hidden=[8]", "eval.episodes=5"]
        subprocess.run([*gymnast(), "train", "CartPole-v1:ppo", *settings, "--runs-dir", str(root)], check=True)
    for traces in root.glob("*/traces"):
        shutil.rmtree(traces)  # every round rolls its episode out
    return root


def main() -> None:
    """Both parts, one results file each."""
    parser = make_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    config = {key: getattr(options, key) for key in ("repeats", "points", "runs")} | {"versions": all_versions()}
    with tempfile.TemporaryDirectory(prefix="gymnast-studio-bench-") as name, chromium() as browser:
        folder = Path(name)
        config["chromium"] = re.sub(r"[^\d.]", "", browser.version)
        stores = make_stores(folder, long=options.points, short=5)
        make_many(folder / "many", options.runs)
        ids = json.loads((folder / "ids.json").read_text())
        quiet = not options.no_wait
        record = interleave("studio", config, side_by_side(browser, stores, ids), options.repeats, quiet=quiet)
        summary: dict[str, Any] = {}
        for key in ("start", "pan_100k", "page_kb", "memory_mb"):
            summary |= {f"{tool} {key}": spread(record, key, tool) for tool in PORTS}
            summary |= {f"{peer} ÷ gymnast, {key}": ratio(record, key, peer, "gymnast") for peer in PEERS}
        finish(record, summary)
        record = interleave(
            "studio_pages", config, {"studio": alone(browser, folder, ids[0])}, options.repeats, quiet=quiet
        )
        found = {key: spread(record, key, "studio") for key in record["rounds"][0]["studio"]}
        bars = (("first_page", "≤ 0.6 s", 0.6), ("scrub_p95_ms", "≤ 33 ms", 33.0), ("live_p95", "≤ 2 s", 2.0),
                ("memory_mb_1000", "≤ 120 MB", 120.0))  # fmt: skip
        finish(
            record, found | {f"bar {key}": verdict(found[key]["median"], bar, at_most=most) for key, bar, most in bars}
        )


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Debian's Chromium without a window."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        raise SystemExit("There is no Chromium on this machine: apt-get install chromium")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


if __name__ == "__main__":
    main()
