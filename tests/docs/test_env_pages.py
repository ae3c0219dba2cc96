"""What docs/envs says is so: every preset has its row, section, picture and commands, with the numbers of its spec."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gymnast.config.files import SHIPPED, read
from gymnast.config.load import resolve
from gymnast.envs.make import make_envs

DOCS = Path(__file__).parents[2] / "docs"
FILES = {file.data["id"]: file for file in map(read, sorted((SHIPPED / "envs").glob("*.yaml")))}
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "envs").glob("*.md")}
WRITTEN_HERE = sorted(
    env_id for env_id in FILES if not env_id.startswith("gymnast/")
)  # bandits have tests of their own
ONE_OF_EACH = ("Acrobot-v1", "Taxi-v4", "LunarLander-v3", "Hopper-v5", "MinAtar/Asterix-v1", "MiniGrid-Empty-5x5-v0")
SAVED = {"classic": "snapshot", "toy-text": "snapshot", "box2d": "replay"}
SAVED |= {"mujoco": "snapshot", "minatar": "snapshot", "minigrid": "replay"}


def number(text: str) -> float | None:
    return None if text == "–" else float(text.replace("−", "-").replace(",", ""))


def rows() -> dict[str, tuple[str, str, str, str]]:
    """Picture, page, threshold and variants of each env in the index."""
    pattern = r'\| <img src="(.*?)".*?> \| \[(.*?)\]\((.*?)\) \| (.*?) \| (.*?) \|'
    return {
        name: (picture, page, at, variants) for picture, name, page, at, variants in re.findall(pattern, PAGES["index"])
    }


def section(env_id: str) -> str:
    """The part of its page that is about one env."""
    page = rows()[env_id][1].partition(".md")[0]
    return re.split(r"^## ", PAGES[page].partition(f"## {env_id}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def test_the_index_has_every_preset():
    assert set(rows()) == set(FILES)


@pytest.mark.parametrize("env_id", sorted(FILES))
def test_row_says_what_the_spec_says(env_id):
    picture, page, at, variants = rows()[env_id]
    assert number(at) == FILES[env_id].data["spec"].get("solved_at")
    assert variants.split(", ") == list(FILES[env_id].variants)
    assert page.partition(".md")[0] in PAGES
    assert 100 < (DOCS / "envs" / picture).stat().st_size <= 40_000


@pytest.mark.parametrize("env_id", WRITTEN_HERE)
def test_section_says_what_the_spec_says(env_id):
    text, spec = section(env_id), resolve(env_id).config.spec
    words = " ".join(text.split())
    assert f"../images/envs/{env_id.replace('/', '_')}.png" in text
    assert [f"gymnast train {env_id}:{name}" for name in FILES[env_id].variants] == re.findall(
        r"^gymnast .*$", text, re.M
    )
    assert spec.description in words
    for action, label in enumerate(spec.actions):
        assert f"{action} {label}" in words
    scores = {"random": spec.random_score, "optimum": spec.optimal_score, **spec.reference_scores}
    scores["best published"] = spec.best_published
    told = {who: number(score) for who, score in re.findall(r"^\| ([^|]+) \| ([−\d.,]+) \|", text, re.M)}
    known = {who: score.score for who, score in scores.items() if score}
    assert told == {who: pytest.approx(score, rel=1e-3) for who, score in known.items()}


@pytest.mark.parametrize("env_id", ONE_OF_EACH)
def test_state_is_saved_as_the_page_says(env_id):
    page = rows()[env_id][1].partition(".md")[0]
    envs = make_envs(resolve(env_id).config.env.model_copy(update={"vectorization": "inprocess"}), 1)
    envs.close()
    assert envs.exact_resume == SAVED[page]
    assert SAVED[page] in PAGES[page]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", PAGES[page]):
        if "://" in target:
            continue
        path = (DOCS / "envs" / target).resolve() if target else DOCS / "envs" / f"{page}.md"
        assert path.exists(), target
        if anchor and path.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
