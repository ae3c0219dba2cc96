"""The pages in a real browser: what a person clicks and types, and what the address keeps."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from launch import until
from made_runs import finished_run
from studio_process import Studio

pytest.importorskip("playwright", reason="pip install playwright")
from playwright.sync_api import expect

from gymnast.metrics.sinks.jsonl import MetricRows
from gymnast.runs.labels import change_tags, write_note
from gymnast.runs.store import Run


def ids(studio: Studio) -> list[str]:
    return [row["id"] for row in studio.get("/api/runs")["runs"]]


def test_runs_are_found_chosen_and_compared_by_keyboard(page: Any, studio: Studio) -> None:
    page.goto("/")
    expect(page.locator(".row")).to_have_count(len(ids(studio)))
    page.keyboard.press("/")
    page.keyboard.type("seed=2")
    expect(page.locator(".row")).to_have_count(1)
    expect(page).to_have_url(re.compile("q=seed"))
    page.keyboard.press("Escape")
    expect(page.locator(".row")).to_have_count(2)
    for key in ("Escape", "j", "x", "j", "x", "c"):
        page.keyboard.press(key)
    page.wait_for_url(re.compile("/compare"))
    page.wait_for_selector(".chart canvas")
    assert set(re.findall("run=([a-z0-9]+)", page.url)) == set(ids(studio))
    expect(page.locator("table.plain td.mono").first).to_have_text("train.seed")
    page.get_by_role("button", name="group seeds").click()
    page.wait_for_selector(".legend >> text=2 seeds")


def test_keys_that_come_faster_than_frames_all_count(page: Any, studio: Studio) -> None:
    """No time between the presses: an effect that waits for a frame would see the page as it was before them."""
    page.goto("/")
    page.wait_for_selector(".table .row")
    page.evaluate("""async () => {
        for (const key of ["j", "x", "j", "x"]) {
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            await Promise.resolve();
        }
    }""")
    expect(page.get_by_role("checkbox", checked=True)).to_have_count(2)


def test_keys_go_on_after_a_click_on_a_box_and_leave_what_has_the_focus_alone(page: Any, studio: Studio) -> None:
    page.goto("/")
    expect(page.locator(".row")).to_have_count(len(ids(studio)))
    page.get_by_role("checkbox").first.click()
    page.keyboard.press("c")  # the box has the focus, and it holds no text
    page.wait_for_url(re.compile("/compare"))
    page.goto("/")
    expect(page.locator(".row")).to_have_count(len(ids(studio)))
    page.keyboard.press("j")
    expect(page.locator(".row[aria-current]")).to_have_count(1)
    page.get_by_role("link", name="Inspector").focus()
    page.keyboard.press("Enter")  # opens the link, not the run
    page.wait_for_url(re.compile("/inspect$"))


def test_amounts_are_read_right(page: Any) -> None:
    page.goto("/")
    found = page.evaluate("""async () => {
        const { count, duration, score, words } = await import("/web/lib/format.js");
        return [
            ...[999, 10_000, 40_000, 400_000, 512_345, 1_000_000, 2_500_000, 40_000_000].map(count),
            duration(0.04), duration(61), duration(3700), score(475), score(0.7108),
            words({schedule: "linear", start: 0.008, end: 0, axis: "progress"}),
        ];
    }""")
    assert found == [
        "999", "10k", "40k", "400k", "512k", "1M", "2.5M", "40M",
        "0.0 s", "61 s", "1 h 2 min", "475.0", "0.711", "linear 0.008 → 0",
    ]  # fmt: skip


LONG = 6000
"""Rows, several times as many as a chart shows."""


@pytest.fixture
def long_run(studio: Studio) -> Iterator[Run]:
    run = finished_run(studio.root, 1.0)
    rows = [{"env_steps": 64 * n, "vec_steps": n, "train/loss": float((n * 7919) % 1000)} for n in range(1, LONG + 1)]
    run.metrics_path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    yield run
    shutil.rmtree(run.folder)  # other tests take the newest run


def saved_points(page: Any, tmp_path: Path) -> dict[int, float]:
    """What the chart shows now, by vec steps."""
    page.get_by_title("Save this chart").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "shown.csv")
    with (tmp_path / "shown.csv").open() as file:
        return {int(row["vec_steps"]): float(row["value"]) for row in csv.DictReader(file)}


def test_a_zoom_shows_every_point_and_a_pan_keeps_it(long_run: Run, page: Any, tmp_path: Path) -> None:
    """Drag a stretch of a thinned curve, pan with Shift, and go back with a double click."""
    page.goto(f"/runs/{long_run.id}?m=train/loss")
    page.wait_for_selector("figure.card canvas")
    whole = saved_points(page, tmp_path)
    assert len(whole) < 2000 and whole.items() <= {n: float((n * 7919) % 1000) for n in range(1, LONG + 1)}.items()
    box = page.locator(".u-over").bounding_box()
    left, width, y = box["x"], box["width"], box["y"] + 40
    page.mouse.move(left + 0.5 * width, y)
    page.mouse.down()
    page.mouse.move(left + 0.52 * width, y, steps=4)
    page.mouse.up()
    middle = LONG // 2 + 50
    until(lambda: {middle, middle + 1, middle + 2} <= saved_points(page, tmp_path).keys())
    page.keyboard.down("Shift")
    page.mouse.move(left + 0.1 * width, y)
    page.mouse.down()
    page.mouse.move(left + 0.9 * width, y, steps=4)  # four fifths of the stretch to the left
    page.mouse.up()
    page.mouse.move(left + 0.1 * width, y)
    page.mouse.down()
    page.mouse.move(left + 0.9 * width, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    earlier = LONG // 2 - 250
    until(lambda: {earlier, earlier + 1, earlier + 2} <= saved_points(page, tmp_path).keys())
    page.locator(".u-over").dblclick()
    until(lambda: saved_points(page, tmp_path) == whole)


def test_where_the_time_goes(page: Any, studio: Studio) -> None:
    run = next(
        run for run in ids(studio) if json.loads((studio.root / run / "status.json").read_text())["vec_steps"] > 64
    )
    shares = studio.get(f"/api/runs/{run}/time")
    assert 0.9 < sum(shares.values()) < 1.1
    page.goto(f"/runs/{run}")
    expect(page.get_by_label("Where the time goes")).to_contain_text(f"learning {round(100 * shares['learn'])}%")


def test_an_address_shows_a_colleague_the_same(page: Any, studio: Studio) -> None:
    run = ids(studio)[0]
    page.goto(f"/runs/{run}")
    page.get_by_role("button", name="env steps").click()
    page.get_by_label("Metrics").fill("explained")
    expect(page.locator("figcaption b")).to_have_text(["train/explained_variance"])
    expect(page).to_have_url(re.compile("x=env_steps.*m=explained"))
    address = page.url
    page.goto("/")
    page.goto(address)
    page.wait_for_selector("figure.card canvas")
    expect(page.get_by_role("button", name="env steps")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_label("Metrics")).to_have_value("explained")


def test_what_is_saved_is_what_was_logged(page: Any, studio: Studio, tmp_path: Path) -> None:
    run = Run(studio.root / ids(studio)[0])
    page.goto(f"/runs/{run.id}?x=env_steps&m=train/entropy$")
    page.wait_for_selector("figure.card canvas")
    for kind in ("CSV", "SVG", "PNG"):
        page.get_by_title("Save this chart").click()
        with page.expect_download() as download:
            page.get_by_role("button", name=kind).click()
        download.value.save_as(tmp_path / kind)
    written = MetricRows(run.metrics_path)
    expected = [(row["env_steps"], row["train/entropy"]) for row in written if row["train/entropy"] is not None]
    with (tmp_path / "CSV").open() as file:
        found = [(int(row["env_steps"]), float(row["value"])) for row in csv.DictReader(file)]
    assert found == expected
    assert (tmp_path / "PNG").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "SVG").read_text().count("<polyline") == 1


def test_a_run_is_started_from_the_page_and_watched_to_its_end(page: Any, studio: Studio) -> None:
    page.goto("/new?config=CartPole-v1:ppo")
    steps = page.locator("label.field", has_text="train.env_steps").locator("input")
    steps.fill("many")
    page.wait_for_selector(".field.wrong")
    expect(page.get_by_role("button", name="Start training")).to_be_disabled()
    steps.fill("20000")
    page.wait_for_selector(".field.wrong", state="detached")
    page.locator("label.field", has_text="train.seed").locator("input").fill("7")
    page.get_by_text("gymnast train CartPole-v1:ppo train.env_steps=20000 train.seed=7").wait_for()
    page.get_by_role("button", name="Start training").click()
    page.wait_for_url(re.compile("/runs/[a-z0-9]{5}"), timeout=60_000)
    page.wait_for_selector(".state.finished, .state.solved", timeout=60_000)
    page.wait_for_selector("figure.card canvas")
    run = Run(studio.root / page.url.rpartition("/")[2])
    assert run.status().env_steps >= 10_000 and run.config()["train"]["seed"] == 7


def test_text_of_a_run_is_inert(page: Any, studio: Studio) -> None:
    hostile = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
    run = finished_run(studio.root, 1.0, env=hostile[:60])
    write_note(run, hostile)
    change_tags(run, ["tag"])
    run.log_path.write_text(hostile)
    run.metrics_path.write_text(
        json.dumps({"env_steps": 64, "vec_steps": 64, hostile: 1.0, "rollout/return_mean": 2.0}) + "\n"
    )
    for address in (
        "/",
        f"/runs/{run.id}?all=1",
        f"/runs/{run.id}?tab=log",
        f"/runs/{run.id}?tab=settings",
        f"/compare?run={run.id}",
    ):
        page.goto(address)
        page.wait_for_selector("main header")
        page.wait_for_load_state("networkidle")
        expect(page).to_have_title("gymnast studio")
        expect(page.locator("main img[src=x]")).to_have_count(0)
    page.goto(f"/runs/{run.id}?tab=log")
    expect(page.locator("pre.log")).to_have_text(hostile)


def test_pages_say_what_to_do_where_nothing_is(page: Any, studio: Studio) -> None:
    page.goto("/runs/zzzzz")
    expect(page.get_by_role("alert")).to_contain_text("There is no run 'zzzzz'")
    page.goto("/nothing/here")
    expect(page.get_by_text("There is no page here")).to_be_visible()
    page.goto("/compare")
    expect(page.get_by_text("Nothing to compare yet")).to_be_visible()
    page.goto("/?q=nosuchrun")
    expect(page.get_by_text("No run matches")).to_be_visible()


def test_dark_light_and_the_keys(page: Any) -> None:
    page.goto("/")
    page.wait_for_selector("main header")
    page.emulate_media(color_scheme="dark")
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    page.keyboard.press("t")
    expect(root).to_have_attribute("data-theme", "light")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("choose for comparison")
