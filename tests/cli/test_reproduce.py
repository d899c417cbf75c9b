"""Papers are run in steps that survive a stop, judged by what they claim, and never over a larger run."""

import json
import sys
import types

import pytest

from discreet import reproduce
from discreet.cli.reproduce import progress, sentence
from discreet.core.checks import DiscreetError, FileError
from discreet.reproduce import Outcome, papers
from discreet.reproduce.page import papers_pages, row_verdict
from discreet.reproduce.running import Run, Tick

CLAIMS = """
title = "Sums of small numbers"

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
from discreet.reproduce import DrawnValues

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
    monkeypatch.setitem(sys.modules, "discreet.reproduce.sums.run", module)
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
    with pytest.raises(FileError, match="holds a full run"):
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
    assert "| 2 to 4 | 2 of 4 |" in papers_pages(sums / "out", sums)["papers.md"]
    assert (sums / "calls.txt").read_text().split() == ["0", "1"]
    assert judged() == [4, 4, 1] and judged(minutes=0) == [4, 4, 1]
    assert (sums / "calls.txt").read_text().split() == ["0", "1", "2", "3"]


def test_a_part_without_a_draw_is_left_out_and_said(sums):
    run = Run("full", None, minutes=0)
    never = run.part(lambda: {"a": run.draws(3, lambda seed: run.step(f"draw {seed}", int, "1"))})
    assert never == {} and run.missing == ["draw 0"] and not run.complete
    assert run.made == {"draw 0": (0, 3)}
    there = Run("full", None)
    assert there.part(lambda: {"a": there.draws(3, lambda seed: seed)}) == {"a": [0, 1, 2]} and there.complete


def test_a_copy_of_data_is_named_by_its_folder(sums, discreet):
    code, _, error = discreet("reproduce", "sums", "--quick", "--data", "netflix=/nowhere")
    assert code == 1 and "NAME=FOLDER" in error
    code, _, _ = discreet("reproduce", "sums", "--quick", "--data", f"netflix={sums}")
    assert code == 0


def test_time_left_comes_from_the_earlier_run(sums):
    ticks = []
    reproduce.reproduce("sums", tick=ticks.append)
    assert [tick.seconds_left for tick in ticks] == [None] * 4
    reproduce.reproduce("sums", out=sums / "papers")
    path = sums / "papers" / "sums" / "results" / "steps.jsonl"
    slow = [json.loads(line) | {"seconds": 60.0} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(step) + "\n" for step in slow))
    ticks.clear()
    reproduce.reproduce("sums", out=sums / "again", tick=ticks.append)
    assert [(tick.done, tick.total) for tick in ticks] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert ticks[-1].seconds_left == 0


def test_the_page_counts_what_can_fail_and_names_it_first(sums):
    reproduce.reproduce("sums", out=sums / "papers")
    pages = papers_pages(sums / "papers", sums)
    counts = "| [sums](#sums) | paper | 1 | 1 |  |  |  | 4 | 4 of 4 | 0.00 |"
    assert counts in pages["papers.md"] and "In sum 4 of 4" in pages["papers.md"]
    first = "| [Figure 1](papers/sums.md#figure-1) | 1 holds, 1 **fails** | nothing is negative |"
    assert first in pages["papers.md"]
    details = pages["papers/sums.md"]
    assert "- Found: a sum of 2.5" in details and "- Draws: 4" in details
    assert "](sums/results/sums.svg)" in details
    assert '<details markdown="1"><summary>2 claims</summary>' in details
    assert details.index("| the difference (Section 2) |") < details.index("| the sum |")
    assert "1 sanity checks, not counted" in details and "| draw | 1 | 4 | 4 |" in details
    # The twin: where the difference is said to be what it is, nothing fails.
    path = sums / "papers" / "sums" / "claims.toml"
    path.write_text(CLAIMS.replace("expected = 5.0", "expected = 1.0"))
    assert "| paper | 2 |  |" in papers_pages(sums / "papers", sums)["papers.md"]


def test_the_command_runs_everything_onto_one_page(sums, discreet):
    code, answer, _ = discreet("reproduce", "--all", "--quick", "--out", "out", "--json")
    assert code == 0 and [row["runs"] for row in json.loads(answer)["sums"]] == [2, 2, 1]
    assert "| [sums](#sums) | paper |" in (sums / "out" / "papers.md").read_text()
    assert (sums / "out" / "papers" / "sums.md").exists()
    code, answer, said = discreet("reproduce", "sums", "--quick")
    assert code == 0 and "paper: 2 undecided" in answer and "2 steps done" in said
    code, _, error = discreet("reproduce")
    assert code == 1 and "Name one paper" in error


def test_a_terminal_shows_a_bar_and_how_long_the_rest_may_take(sums, capsys, monkeypatch):
    reproduce.reproduce("sums", out=sums / "papers")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("sums") as (say, tick):
        reproduce.reproduce("sums", say=say, tick=tick)
        say("still here")
    assert "still here" in capsys.readouterr().err
    assert sentence(Tick("draw 3", 3, 4, 130.0)) == "draw 3; 3 of 4 steps, about 2 min left"
    assert "number of steps left unknown" in sentence(Tick("draw 3", 3, 3, None))


@pytest.mark.parametrize(
    ("old", "new", "refusal"),
    [
        ('rule = "at-least"', 'rule = "about"', "no known rule"),
        ('kind = "sanity"', 'by = "them"', "no known rule, kind, author"),
        ('picture = "sums.svg"', 'verdict = "perhaps"', "no known verdict"),
        ('row = "Figure 1"', 'row = "Figure 2"', "is not there"),
        ('id = "same"', 'id = "sum"', "the same id"),
        ("expected = 5.0", "", "lacks a field"),
        ("{sum}", "{some}", "which is not in claims.toml"),
    ],
)
def test_a_list_of_claims_with_a_fault_is_refused(old, new, refusal, sums):
    path = sums / "papers" / "sums" / "claims.toml"
    path.write_text(CLAIMS.replace(old, new, 1))
    with pytest.raises(DiscreetError, match=refusal):
        papers_pages(sums / "papers", sums)


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
