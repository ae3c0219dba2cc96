"""The pages in a real browser: what a person clicks and types, and what the address keeps."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
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
    page.wait_for_selector(".table .row")
    assert page.locator(".row").count() == len(ids(studio))
    page.keyboard.press("/")
    page.keyboard.type("seed=2")
    expect(page.locator(".row")).to_have_count(1)
    assert "q=seed" in page.url
    page.keyboard.press("Escape")
    expect(page.locator(".row")).to_have_count(2)
    for key in ("Escape", "j", "x", "j", "x", "c"):
        page.keyboard.press(key)
    page.wait_for_url(re.compile("/compare"))
    page.wait_for_selector(".chart canvas")
    assert set(re.findall("run=([a-z0-9]+)", page.url)) == set(ids(studio))
    assert page.locator("table.plain td.mono").all_inner_texts()[0] == "train.seed"
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


def test_an_address_shows_a_colleague_the_same(page: Any, studio: Studio) -> None:
    run = ids(studio)[0]
    page.goto(f"/runs/{run}")
    page.get_by_role("button", name="env steps").click()
    page.get_by_label("Metrics").fill("explained")
    expect(page.locator("figcaption b", has_text="return_mean")).to_have_count(0)
    assert page.locator("figcaption b").all_inner_texts() == ["train/explained_variance"]
    address = page.url
    page.goto("/")
    page.goto(address)
    page.wait_for_selector("figure.card canvas")
    assert page.get_by_role("button", name="env steps").get_attribute("aria-pressed") == "true"
    assert page.get_by_label("Metrics").input_value() == "explained"


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
    assert page.get_by_role("button", name="Start training").is_disabled()
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
        page.wait_for_timeout(300)
        assert page.title() == "gymnast studio"
        assert page.locator("main img[src=x]").count() == 0
    page.goto(f"/runs/{run.id}?tab=log")
    assert page.locator("pre.log").inner_text() == hostile


def test_pages_say_what_to_do_where_nothing_is(page: Any, studio: Studio) -> None:
    page.goto("/runs/zzzzz")
    assert "There is no run 'zzzzz'" in page.get_by_role("alert").inner_text()
    page.goto("/nothing/here")
    assert page.get_by_text("There is no page here").is_visible()
    page.goto("/compare")
    assert page.get_by_text("Nothing to compare yet").is_visible()
    page.goto("/?q=nosuchrun")
    page.get_by_text("No run fits").wait_for()


def test_dark_light_and_the_keys(page: Any) -> None:
    page.goto("/")
    theme = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") != theme
    page.keyboard.press("?")
    assert (
        page.get_by_role("dialog").is_visible() and "choose for comparison" in page.get_by_role("dialog").inner_text()
    )
