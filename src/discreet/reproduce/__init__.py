"""Experiments of papers, compared with the printed numbers.

A paper is a module here. Its function `measure(run)` returns, for each claim's ID, the values of its runs.
The checkout's `papers/PAPER/claims.toml` has the printed numbers and their tolerances.
"""

from discreet.reproduce.claims import Outcome, Verdict, read_claims
from discreet.reproduce.page import paper_page, papers_pages
from discreet.reproduce.papers import (
    claims_of,
    folder_of,
    load_paper,
    names,
    paper_called,
    papers_folder,
    reproduce,
)
from discreet.reproduce.running import Run

__all__ = [
    "Outcome",
    "Run",
    "Verdict",
    "claims_of",
    "folder_of",
    "load_paper",
    "names",
    "paper_called",
    "paper_page",
    "papers_folder",
    "papers_pages",
    "read_claims",
    "reproduce",
]
