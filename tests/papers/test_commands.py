"""Every command on the page of commands runs at toy size, and labels state what the page states."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from discreet.collect.gradient_rounds import GradientDevice
from discreet.collect.opening import open_campaign
from discreet.models.storage import read_label
from discreet.papers import PAPERS
from discreet.report.guarantee_wording import PRINTED_DPIMF, PRINTED_DPMF, PRINTED_OBJECTIVE, PRINTED_OUTPUT
from discreet.reproduce.papers import reproduce
from discreet.service.admission import submission
from discreet.service.stores import open_store
from toy import toy_interactions

PAGE = Path(__file__).parents[2] / "docs" / "paper_commands.md"
LINE = re.compile(
    r"^\| (?P<part>[^|]+) \| `discreet (?P<command>[^`]+)` \| (?P<guarantee>\w*) ?\|$", re.MULTILINE
)
LINES = [match.groupdict() for match in LINE.finditer(PAGE.read_text(encoding="utf8"))]
# tests/test_papers.py runs the experiments at toy size.
PAGE_ALONE = {"size": "toy", "minutes": 0.0}
REFUTED = {PRINTED_DPIMF, PRINTED_DPMF, PRINTED_OBJECTIVE, PRINTED_OUTPUT}


@pytest.fixture
def in_folder_with_ratings(tmp_path, monkeypatch):
    data = toy_interactions(n_users=60, n_items=30, per_user=10, seed=2)
    lines = ["userId,movieId,rating"]
    lines += [f"{u},{i},{v:g}" for u, i, v in zip(data.rows(), data.items, data.values, strict=True)]
    (tmp_path / "ratings.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "items.txt").write_text("\n".join(map(str, range(data.n_items))) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_line_of_a_table_has_a_command_and_every_paper_has_lines():
    rows = [line for line in PAGE.read_text(encoding="utf8").splitlines() if line.startswith("| ")]
    heads = sum(line.startswith("| part ") for line in rows)
    assert heads == len(PAPERS) and len(LINES) == len(rows) - heads
    assert {
        line["command"].split()[2] for line in LINES if line["command"].startswith("papers theory")
    } == set(PAPERS)


# What each paper states or compares with, in the words of its section.
STATED = {
    "One-bit completion": "Algorithm 1, unequal p1, Algorithm 2, Algorithm 3, Algorithm 4, Clear, "
    "Theorems 1 to 4, Figures 1 to 5, Table 1",
    "Joint-DP Frank-Wolfe": "Frank-Wolfe as printed, Private Oja, SVD after cleansing, Projected gradient, "
    "E_emp and E_gen, All figures",
    "Bounded Laplace noise and a mixture of Gaussians": "BLP-MoG-MF, BLP on devices, ISGD, ISGD on devices, "
    "PG-MF, PG-MF over HTTP, Non-private MF, Definition 1, Table 1, Figures 2 to 4",
    "Two rating-collection mechanisms": "Randomized response and recovery, Modified Laplace and recovery, "
    "Randomized response on devices, Modified Laplace on devices, Theorems 1 to 3",
    "Implicit factorization (DPIMF)": "Strawman, Complementary, Symmetric, Optimal, Importance sampling, "
    "uniform and utility-optimal sampling, User solves, DPMF, DPLCF, LDPICF, DPLCF on devices, "
    "LDPICF on devices, GT, parties that share items, parties that share users, Flower, "
    "Theorems 2 to 6, Corollary 1, Algorithm 3, Figures 5 to 8, Tables III to VIII",
}


def test_no_part_of_a_paper_is_missing():
    sections = dict(part.split("\n", 1) for part in PAGE.read_text(encoding="utf8").split("\n## ")[1:])
    for title, parts in STATED.items():
        found = [match["part"] for match in LINE.finditer(sections[title])]
        missing = [part for part in parts.split(", ") if not any(part in one for one in found)]
        assert not missing, title
    assert len(STATED) == len(PAPERS)


def answer_a_round(*, close):
    """Keep one device's answer in a store, as a service does."""
    asked = open_campaign("rounds.campaign")
    store = open_store("rounds.db", asked)
    question = asked.question(0, np.zeros((len(asked.catalog), asked.factors)))
    store.take([submission(asked, GradientDevice(asked, {0: 5.0}).answer(question))])
    if close:
        store.close_round()
    store.close()


@pytest.mark.few(8)
@pytest.mark.parametrize("line", LINES, ids=lambda line: line["part"])
def test_a_command_runs_and_its_label_agrees(line, in_folder_with_ratings, discreet, monkeypatch):
    arguments = shlex.split(line["command"])

    def page_alone(paper, **given):
        return reproduce(paper, **given | PAGE_ALONE)

    monkeypatch.setattr("discreet.reproduce.reproduce", page_alone)
    # A service runs until it is stopped; tests/service/test_rounds.py asks one.
    monkeypatch.setattr("discreet.service.running.run", lambda *given: None)
    rounds = "rounds.db" in arguments
    reads = ["rounds.campaign"] if rounds else arguments if arguments[1] != "new" else []
    for made in (one for one in reads if one.endswith(".campaign")):
        (before,) = (one["command"] for one in LINES if one["command"].endswith(f"--out {made}"))
        assert discreet(*shlex.split(before))[0] == 0
    if rounds:
        answer_a_round(close=arguments[1] == "fit")
    code, _, error = discreet(*arguments)
    assert code == 0, error
    if "m.discreet" not in arguments:
        return
    promise = read_label("m.discreet")["guarantee"]
    proved = promise["basis"] == "proved"
    assert proved == (line["guarantee"] == "proved")
    refuted = not REFUTED.isdisjoint(promise["notes"])
    assert refuted == (line["guarantee"] == "refuted")
    # Devices of the one-bit campaign report likes, so that its model is on their scale.
    best = 1 if "bits.campaign" in arguments else 5
    (in_folder_with_ratings / "me.csv").write_text(f"userId,movieId,rating\n5,3,{best}\n5,4,1\n")
    code, answer, error = discreet("recommend", "m.discreet", "--history", "me.csv", "--json")
    assert code == 0, error
    assert answer
