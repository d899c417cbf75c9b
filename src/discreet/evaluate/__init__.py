"""Measure how well a model predicts and ranks what it has not seen, beside simple references."""

from discreet.evaluate.comparison import compare
from discreet.evaluate.evaluation import Evaluation, Score
from discreet.evaluate.metrics import Metric, parse_metrics
from discreet.evaluate.protocol import evaluate
from discreet.evaluate.references import bars
from discreet.evaluate.report import render_report, write_report
from discreet.evaluate.scoring import measure

__all__ = [
    "Evaluation",
    "Metric",
    "Score",
    "bars",
    "compare",
    "evaluate",
    "measure",
    "parse_metrics",
    "render_report",
    "write_report",
]
