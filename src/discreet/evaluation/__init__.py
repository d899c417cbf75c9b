"""Measure how well a model predicts and ranks held-out ratings, compared with simple baselines."""

from discreet.evaluation.comparison import compare
from discreet.evaluation.metrics import Metric, parse_metrics
from discreet.evaluation.protocol import evaluate
from discreet.evaluation.references import baselines
from discreet.evaluation.report import render_report, write_report
from discreet.evaluation.results import Evaluation, Score
from discreet.evaluation.scoring import measure

__all__ = [
    "Evaluation",
    "Metric",
    "Score",
    "baselines",
    "compare",
    "evaluate",
    "measure",
    "parse_metrics",
    "render_report",
    "write_report",
]
