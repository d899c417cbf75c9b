"""Experiments of papers, compared with the printed numbers.

A paper is a package here. Its `run` has a function `measure(run)` that returns, for each claim's ID, the
values of its runs. The checkout's `papers/PAPER/claims.toml` has the printed numbers and their tolerances.
"""

from discreet.reproduce.claims import Claim, Outcome, PaperRow, read_claims
from discreet.reproduce.judging import Verdict, judge
from discreet.reproduce.page import papers_pages, single_page
from discreet.reproduce.papers import (
    claims_of,
    folder_of,
    load_paper,
    names,
    paper_called,
    papers_folder,
    reproduce,
)
from discreet.reproduce.running import DrawnValues, Run, ratio_of_means, save_plot

__all__ = [
    "Claim",
    "DrawnValues",
    "Outcome",
    "PaperRow",
    "Run",
    "Verdict",
    "claims_of",
    "folder_of",
    "judge",
    "load_paper",
    "names",
    "paper_called",
    "papers_folder",
    "papers_pages",
    "ratio_of_means",
    "read_claims",
    "reproduce",
    "save_plot",
    "single_page",
]
