"""Papers are run in steps that survive a stop, judged by what they claim, and never over a larger run."""

import json
import sys
import types

import pytest

from command_line import one_sentence, rejected
from discreet import reproduce
from discreet.cli.papers import summary
from discreet.reproduce import Outcome, copies, papers
from discreet.reproduce.page import papers_pages, row_verdict
from discreet.reproduce.running import Run
from discreet.testing import refuses

CLAIMS = """
title = "Sums of small numbers"

[[headline]]
claim = "a sum is at least 1"
of = "sum"
printed = "1"
ours = "{sum}"

[[row]]
what = "Figure 1"
code = "papers/sums/run.py"
printed = "sums are at least 1"
found = "a sum of {sum}"
why = "nothing is negative"
picture = "sums.svg"

[[claim]]
id = "sum"
where = "Figure 1"
measure = "the sum"
expected = 1.0
tolerance = 0.0
rule = "at-least"
row = "Figure 1"

[[claim]]
id = "wrong"
row = "Figure 1"
where = "Section 2"
measure = "the difference"
expected = 5.0
tolerance = 1.0
why = "a slip of the pen"

[[claim]]
id = "same"
row = "Figure 1"
kind = "sanity"
exact = true
where = "Section 2"
measure = "one over one"
expected = 1.0
tolerance = 0.0
"""
RUN = """
from pathlib import Path
from discreet.reproduce.running import DrawnValues

def work(number):
    with Path("calls.txt").open("a") as file:
        file.write(f"{number}\\n")
    if Path("stop").exists() and number == 2:
        raise KeyboardInterrupt
    return number + 1

def measure(run):
    draws = run.pick(full=4, quick=2, toy=1)
    values = run.draws(draws, lambda number: run.step(f"draw {number}", work, number))
    if run.folder:
        (run.folder / "sums.svg").write_text("<svg/>")
    return {"sum": values, "wrong": DrawnValues([1.0], draws, 0.1), "same": [1.0]}
"""


@pytest.fixture
def sums(tmp_path, monkeypatch):
    """Make a checkout with one paper of its own."""
    folder = tmp_path / "papers" / "sums"
    folder.mkdir(parents=True)
    (folder / "claims.toml").write_text(CLAIMS)
    module = types.ModuleType("sums")
    exec(RUN, module.__dict__)
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(papers, "__file__", str(tmp_path / "src" / "a" / "b" / "c.py"))
    monkeypatch.setattr(papers, "PAPERS", {"sums": "Sums of small numbers"})
    monkeypatch.setitem(sys.modules, "discreet.reproduce.sums", module)
    return tmp_path


def test_a_stopped_run_goes_on_where_it_was_and_finds_the_same(sums):
    fresh = reproduce.reproduce("sums", out=sums / "fresh")
    (sums / "stop").touch()
    (sums / "calls.txt").unlink()
    with pytest.raises(KeyboardInterrupt):
        reproduce.reproduce("sums", out=sums / "out")
    (sums / "stop").unlink()
    steps = sums / "out" / "sums" / "results" / "steps.jsonl"
    with steps.open("a") as file:
        file.write('{"step": "half a li')
    assert reproduce.reproduce("sums", out=sums / "out") == fresh
    assert (sums / "calls.txt").read_text().split() == ["0", "1", "2", "2", "3"]
    assert len(steps.read_text().splitlines()) == 4


def test_a_smaller_run_never_goes_over_a_full_one_and_tells_its_own_draws(sums):
    full = reproduce.reproduce("sums", out=sums / "papers")
    results = sums / "papers" / "sums" / "results"
    before = {path.name: path.read_bytes() for path in results.iterdir()}
    with refuses("full-run-kept", size="quick"):
        reproduce.reproduce("sums", size="quick", out=sums / "papers")
    quick = reproduce.reproduce("sums", size="quick")
    assert [verdict.runs for verdict in full] == [4, 4, 1]
    assert [verdict.runs for verdict in quick] == [2, 2, 1]
    assert before == {path.name: path.read_bytes() for path in results.iterdir()}


def test_minutes_and_draws_limit_a_run_and_what_was_reached_is_judged(sums):
    def judged(**limits):
        return [verdict.runs for verdict in reproduce.reproduce("sums", out=sums / "out", **limits)]

    assert judged(draws=2) == [2, 4, 1]
    assert judged(minutes=0) == [2, 4, 1], "only what is kept is judged"
    assert "Draws: 2 of 4" in papers_pages(sums / "out", sums)["papers/sums.md"]
    assert (sums / "calls.txt").read_text().split() == ["0", "1"]
    assert judged() == [4, 4, 1] and judged(minutes=0) == [4, 4, 1]
    assert (sums / "calls.txt").read_text().split() == ["0", "1", "2", "3"]


def test_a_part_without_a_draw_is_left_out_and_said(sums):
    run = Run("full", None, minutes=0)
    never = run.part(lambda: {"a": run.draws(3, lambda seed: run.step(f"draw {seed}", int, "1"))})
    assert never == {} and run.missing == ["draw 0"]
    assert run.made == {"draw 0": (0, 3)}
    there = Run("full", None)
    assert there.part(lambda: {"a": there.draws(3, lambda seed: seed)}) == {"a": [0, 1, 2]}


def test_a_copy_of_data_is_named_by_its_path(sums, discreet, monkeypatch):
    monkeypatch.setattr(copies, "USED", {"sums": ("netflix", "ml-100k")})
    for wrong in ("netflix=/nowhere", "netflix", "=x", f"yahoo={sums}"):
        one_sentence(*discreet("reproduce", "sums", "--quick", "--data", wrong))
    code, _, _ = discreet("reproduce", "sums", "--quick", "--data", f"netflix={sums}")
    assert code == 0


@pytest.mark.parametrize("paper", reproduce.names())
def test_a_paper_rejects_data_that_it_did_not_use(paper, discreet, tmp_path):
    one_sentence(*discreet("reproduce", paper, "--quick", "--data", f"gowalla={tmp_path}"))


def test_a_copy_takes_the_place_of_the_dataset(tmp_path, monkeypatch):
    path = tmp_path / "own.csv"
    path.write_text("user,item,rating\n1,1,4\n1,2,5\n2,1,3\n")
    checked = copies.checked_copies("one-bit", {"movielens-100k": path})
    assert checked == {"ml-100k": path}
    with copies.using(checked):
        assert copies.load("movielens-100k").n_ratings == 3
        assert copies.find("movielens-100k") == path
    assert copies.copy_of("ml-100k") is None


def test_parts_of_jester_are_joined_by_users(tmp_path):
    for number in (1, 2):
        lines = ["user,item,rating", *(f"{user},{item},{number}" for user in (1, 2) for item in (1, 2, 3))]
        (tmp_path / f"{number}.csv").write_text("\n".join(lines) + "\n")
    with copies.using({"jester-1": tmp_path / "1.csv", "jester-2": tmp_path / "2.csv"}):
        whole = copies.load("jester")
    assert (whole.n_users, whole.n_items, whole.n_ratings) == (4, 3, 12)
    assert sorted(whole.values.tolist()) == [1.0] * 6 + [2.0] * 6


def test_one_paper_gets_one_page_and_few_lines(sums, discreet):
    code, out, error = discreet("reproduce", "sums", "--quick", "--out", sums / "out")
    page = sums / "out" / "sums.md"
    assert code == 0 and page.exists() and str(page) in error.replace("\n", "")
    assert "](sums/results/sums.svg)" in page.read_text()
    assert "Figure 1" in out and len((out + error).splitlines()) < 40


@pytest.mark.parametrize("paper", reproduce.names())
def test_no_paper_prints_more_than_40_lines(paper):
    verdicts = papers.committed(paper, reproduce.papers_folder())
    lines = summary(paper, verdicts, quick=True)
    assert len(lines) > len(summary(paper, verdicts))
    assert len(lines) <= 36, "Progress and the page's place need four more."
    assert max(map(len, lines)) <= 80


def test_earlier_names_of_papers_still_run(discreet):
    assert reproduce.paper_called("implicit") == "dpimf"
    assert reproduce.paper_called("local-mixture") == "mixture"
    one_sentence(*discreet("reproduce", "one-bitt", "--quick"))


def test_progress_is_the_share_of_the_time_of_an_earlier_run(sums):
    shown = []

    def show(*progress):
        shown.append(progress)

    reproduce.reproduce("sums", progress=show)
    assert shown == [("sums", 0, 0)] * 4
    reproduce.reproduce("sums", out=sums / "papers")
    path = sums / "papers" / "sums" / "results" / "steps.jsonl"
    seconds = (10.0, 30.0, 50.0, 10.0)
    slow = [
        json.loads(line) | {"seconds": each}
        for line, each in zip(path.read_text().splitlines(), seconds, strict=True)
    ]
    path.write_text("".join(json.dumps(step) + "\n" for step in slow))
    shown.clear()
    reproduce.reproduce("sums", out=sums / "again", progress=show)
    assert shown == [("sums", percent, 100) for percent in (10, 40, 90, 100)]


def test_the_page_shows_claims_figures_and_readings(sums, snapshot):
    reproduce.reproduce("sums", out=sums / "papers")
    path = sums / "papers" / "sums" / "claims.toml"
    pages = papers_pages(sums / "papers", sums)
    snapshot(pages["papers.md"])
    snapshot(pages["papers/sums.md"])
    # Two readings of one statement that disagree.
    group = 'group = "a sum"\nreading = "{}"\nrow'
    parts = CLAIMS.split("[[claim]]")
    parts[1], parts[2] = (
        part.replace("row", group.format(words), 1)
        for part, words in zip(parts[1:3], ("plain", "shifted"), strict=True)
    )
    path.write_text("[[claim]]".join(parts).replace('of = "sum"', 'of = "a sum"'))
    pages = papers_pages(sums / "papers", sums)
    snapshot(pages["papers.md"])
    snapshot(pages["papers/sums.md"])
    # A headline of nothing is an error.
    path.write_text(CLAIMS.replace('of = "sum"', 'of = "nothing"'))
    with refuses("bad-claims") as caught:
        papers_pages(sums / "papers", sums)
    assert "row" in caught.value.must


def test_the_command_runs_everything_onto_one_page(sums, discreet):
    code, answer, _ = discreet("reproduce", "--all", "--quick", "--out", "out", "--json")
    assert code == 0 and [row["runs"] for row in json.loads(answer)["sums"]] == [2, 2, 1]
    assert "(papers/sums.md)" in (sums / "out" / "papers.md").read_text()
    assert (sums / "out" / "papers" / "sums.md").exists()
    code, answer, _ = discreet("reproduce", "sums", "--quick")
    assert code == 0 and "paper: 2 undecided" in answer
    rejected(discreet("reproduce"), "option-missing")


@pytest.mark.parametrize(
    ("old", "new", "must"),
    [
        ('rule = "at-least"', 'rule = "about"', "known rule"),
        ('kind = "sanity"', 'by = "them"', "known rule"),
        ('picture = "sums.svg"', 'verdict = "perhaps"', "known verdict"),
        ('row = "Figure 1"', 'row = "Figure 2"', "row that exists"),
        ('id = "same"', 'id = "sum"', "be different"),
        ("expected = 5.0", "", "all fields"),
        ("a sum of {sum}", "a sum of {some}", "exist"),
    ],
)
def test_a_list_of_claims_with_a_fault_is_refused(old, new, must, sums):
    path = sums / "papers" / "sums" / "claims.toml"
    path.write_text(CLAIMS.replace(old, new, 1))
    with refuses("bad-claims") as caught:
        papers_pages(sums / "papers", sums)
    assert must in caught.value.must


@pytest.mark.parametrize("paper", reproduce.names())
def test_every_line_of_the_committed_page_says_something(paper):
    folder = reproduce.papers_folder()
    results = papers.results_of(folder, paper)
    told = reproduce.read_claims(folder / paper.replace("-", "_") / "claims.toml")
    verdicts = papers.committed(paper, folder)
    assert told.rows and verdicts
    for verdict in verdicts:
        claim, outcome = verdict.claim, verdict.outcome
        assert outcome is not Outcome.FAILS or verdict.why, f"{claim.id} fails and does not say why"
        assert outcome is not Outcome.FAILS or claim.kind == "claim", f"the sanity check {claim.id} fails"
        assert claim.row, f"{claim.id} belongs to no row"
        assert outcome not in (Outcome.HOLDS, Outcome.FAILS) or claim.exact or verdict.runs >= 3, claim.id
    for row in told.rows:
        assert row.why.strip() and row.printed.strip() and row_verdict(row, verdicts), row.what
        assert all((folder.parent / place).exists() for place in row.code.split(", ")), row.code
        pictures = [results / one for one in row.picture.split(", ") if one]
        assert all(picture.exists() for picture in pictures), row.picture
