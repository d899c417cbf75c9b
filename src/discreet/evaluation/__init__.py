"""Measure how well a model predicts and ranks held-out ratings, compared with simple baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.core.exports import Exports

if TYPE_CHECKING:
    from discreet.evaluation.comparison import compare as compare
    from discreet.evaluation.metric_kinds import EachListMetric as EachListMetric
    from discreet.evaluation.metric_kinds import ListMetric as ListMetric
    from discreet.evaluation.metric_kinds import RatingMetric as RatingMetric
    from discreet.evaluation.metric_kinds import ShownMetric as ShownMetric
    from discreet.evaluation.metrics import Metric as Metric
    from discreet.evaluation.metrics import parse_metrics as parse_metrics
    from discreet.evaluation.protocol import evaluate as evaluate
    from discreet.evaluation.references import baselines as baselines
    from discreet.evaluation.report import render_report as render_report
    from discreet.evaluation.report import write_report as write_report
    from discreet.evaluation.results import Evaluation as Evaluation
    from discreet.evaluation.results import Score as Score
    from discreet.evaluation.scoring import measure as measure
else:
    _exports = Exports(
        "discreet.evaluation",
        {
            "discreet.evaluation.comparison": "compare",
            "discreet.evaluation.metric_kinds": "EachListMetric ListMetric RatingMetric ShownMetric",
            "discreet.evaluation.metrics": "Metric parse_metrics",
            "discreet.evaluation.protocol": "evaluate",
            "discreet.evaluation.references": "baselines",
            "discreet.evaluation.report": "render_report write_report",
            "discreet.evaluation.results": "Evaluation Score",
            "discreet.evaluation.scoring": "measure",
        },
    )
    __all__ = _exports.names

    def __getattr__(name: str) -> object:
        return _exports.find(name)
