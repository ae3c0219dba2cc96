"""A real notebook, run by a real kernel: what a person sees in its cells."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = (
    'import gymnast\nresult = gymnast.train("CartPole-v1", env_steps=8192, seed=1, eval__episodes=5, progress=True)',
    """from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.wrappers import TimeLimit
from torch import nn

class Mine(CartPoleEnv):
    pass

class Net(nn.Module):
    def __init__(self, space):
        super().__init__()
        self.layer = nn.Linear(space.shape[0], 8)

    def forward(self, obs):
        return self.layer(obs).tanh()

result = gymnast.train(lambda: TimeLimit(Mine(), 20), encoder=Net, env_steps=512, eval__episodes=2,
    env__vectorization="workers", env__n_workers=2)
result""",
    "gymnast.load().evaluate(3)",
    'gymnast.train("CartPole-v1", gama=0.9)',
)


class Words(HTMLParser):
    """The text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_notebook_shows_one_table_and_is_quiet_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, timeout=200, allow_errors=True).execute()
    shown, quiet, judged, wrong = ([*cell.outputs] for cell in notebook.cells)
    tables = [output.data for output in shown if "data" in output]
    assert len(tables) == 1  # redrawn in place
    plain: Any = tables[0]["text/plain"]
    assert "return_mean" in plain
    assert "8,192 env_steps" in plain
    assert max(map(len, plain.splitlines())) <= 100
    words = Words(tables[0]["text/html"]).text
    assert [line.rstrip() for line in words.strip("\n").splitlines()] == [
        line.rstrip() for line in plain.strip("\n").splitlines()
    ]
    text = "".join(output.text for output in shown if output.output_type == "stream")
    assert "\x1b" not in text
    assert "8,192 env steps" in text
    assert [output.output_type for output in quiet] == ["execute_result"]
    assert quiet[0].data["text/plain"].startswith("TrainResult(run ")
    assert judged[0].data["text/plain"].startswith("Evaluation(20.0 ± 0.0 over 3 episodes, deterministic")
    assert wrong[0].ename == "UsageError"
    assert "Did you mean" in wrong[0].evalue
