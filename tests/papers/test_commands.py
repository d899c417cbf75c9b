"""Every command on the page of commands runs at toy size, and labels state what the page states."""

import re
import shlex
from pathlib import Path

import pytest

from discreet.models.storage import read_label
from discreet.papers import PAPERS
from toy import toy_interactions

PAGE = Path(__file__).parents[2] / "docs" / "paper_commands.md"
LINE = re.compile(
    r"^\| (?P<part>[^|]+) \| `discreet (?P<command>[^`]+)` \| (?P<guarantee>\w*) ?\|$", re.MULTILINE
)
LINES = [match.groupdict() for match in LINE.finditer(PAGE.read_text(encoding="utf8"))]


@pytest.fixture
def in_folder_with_ratings(tmp_path, monkeypatch):
    data = toy_interactions(n_users=60, n_items=30, per_user=10, seed=2)
    lines = ["userId,movieId,rating"]
    lines += [f"{u},{i},{v:g}" for u, i, v in zip(data.rows(), data.items, data.values, strict=True)]
    (tmp_path / "ratings.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_line_of_a_table_has_a_command_and_every_paper_has_lines():
    rows = [line for line in PAGE.read_text(encoding="utf8").splitlines() if line.startswith("| ")]
    heads = sum(line.startswith("| part ") for line in rows)
    assert heads == len(PAPERS) and len(LINES) == len(rows) - heads
    assert {line["command"].split()[1] for line in LINES if line["command"].startswith("theory")} == set(
        PAPERS
    )


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["part"])
def test_a_command_runs_and_its_label_agrees(line, in_folder_with_ratings, discreet):
    arguments = shlex.split(line["command"])
    code, _, error = discreet(*arguments)
    assert code == 0, error
    if "--out" not in arguments:
        return
    promise = read_label("m.discreet")["guarantee"]
    proved = promise["basis"] == "proved"
    assert proved == (line["guarantee"] == "proved")
    refuted = any("NOT PRIVATE as printed" in note for note in promise["notes"])
    assert refuted == (line["guarantee"] == "refuted")
