"""Reproduce papers' experiments and compare the results with the printed numbers; needs a checkout.

A paper is a folder of `papers/`. Its `claims.toml` holds the printed numbers and their tolerances. Its
`run.py` has a function `measure(run)` that returns, for each claim's id, the values of its runs.
"""

from discreet.reproduce.claims import Claim, Outcome, PaperRow, read_claims
from discreet.reproduce.judging import Verdict, judge
from discreet.reproduce.page import papers_pages
from discreet.reproduce.papers import load_paper, names, papers_folder, reproduce
from discreet.reproduce.running import DrawnValues, Run, ratio_of_means, save_plot

__all__ = [
    "Claim",
    "DrawnValues",
    "Outcome",
    "PaperRow",
    "Run",
    "Verdict",
    "judge",
    "load_paper",
    "names",
    "papers_folder",
    "papers_pages",
    "ratio_of_means",
    "read_claims",
    "reproduce",
    "save_plot",
]
