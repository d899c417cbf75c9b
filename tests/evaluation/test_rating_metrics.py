import math

import numpy as np
import pytest

from discreet.evaluation.metrics import Metric, parse_metrics
from discreet.evaluation.rating_metrics import (
    accuracy,
    average_relative_error,
    mean_absolute_error,
    root_mean_squared_error,
)
from discreet.testing import refuses


def test_errors_by_hand():
    predicted, actual = [1.0, 2.0, 5.0], [2.0, 2.0, 3.0]
    assert root_mean_squared_error(predicted, actual) == pytest.approx(math.sqrt(5 / 3))
    assert mean_absolute_error(predicted, actual) == pytest.approx(1.0)
    assert average_relative_error(predicted, actual) == pytest.approx(5 / 17)


def test_average_relative_error_is_the_frobenius_ratio():
    generator = np.random.default_rng(0)
    truth, guess = generator.normal(size=(7, 5)), generator.normal(size=(7, 5))
    expected = np.linalg.norm(guess - truth) ** 2 / np.linalg.norm(truth) ** 2
    assert average_relative_error(guess, truth) == pytest.approx(expected)


def test_accuracy_of_ratings_and_of_signed_scores():
    actual = [5.0, 4.0, 3.0, 1.0]
    assert accuracy([4.0, 2.0, 2.0, 3.5], actual, above=3.0) == pytest.approx(0.5)
    assert accuracy([0.1, -2.0, -0.1, 0.0], actual, above=3.0, cut=0.0) == pytest.approx(0.75)


@pytest.mark.parametrize("score", [root_mean_squared_error, mean_absolute_error, average_relative_error])
@pytest.mark.parametrize("predicted", [[np.nan, 1.0], [np.inf, 1.0]])
def test_broken_predictions_have_no_score(score, predicted):
    with refuses("not-finite-array", name="The predictions"):
        score(predicted, [1.0, 2.0])


def test_other_refusals():
    with refuses("shapes-differ", name="predicted", shape=(1,), other="actual", other_shape=(2,)):
        root_mean_squared_error([1.0], [1.0, 2.0])
    with refuses("nothing-held-out", metric="the metrics"):
        mean_absolute_error([], [])
    with refuses("zero-truth"):
        average_relative_error([1.0], [0.0])


NAMES = """rmse mae accuracy are hr@10 ndcg@10 recall@20 capped-recall@20 precision@10 mrr mrr@10 coverage@10
hr@10:99 ndcg@5:1000 mrr:99 mrr@10:99"""
NOT_NAMES = "hr hr@0 hr@-1 hr@1.5 hr@10:0 hr@10: rmse@10 rmse:99 coverage@10:99 auc hr@10/99"


@pytest.mark.parametrize("text", NAMES.split())
def test_names_read_back(text):
    assert str(Metric.parse(text)) == text
    assert Metric.parse(f" {text.upper()} ") == Metric.parse(text)


@pytest.mark.parametrize("text", ["", "hr 10", *NOT_NAMES.split()])
def test_unknown_names_are_refused_with_the_known_ones(text):
    with refuses("unknown-metric"):
        Metric.parse(text)


def test_lists_of_names():
    assert parse_metrics("rmse, hr@10,rmse") == (Metric("rmse"), Metric("hr", 10))
    assert parse_metrics(["mae", Metric("mrr")]) == (Metric("mae"), Metric("mrr"))
    assert parse_metrics(Metric("mae")) == (Metric("mae"),)
    with refuses("nothing-given", name="metrics", least=1):
        parse_metrics([])


def test_the_two_protocols_are_different_metrics():
    full, sampled = Metric.parse("hr@10"), Metric.parse("hr@10:99")
    assert full != sampled
    assert (full.sampled, sampled.sampled) == (None, 99)


def test_direction():
    assert [Metric.parse(name).lower_is_better for name in ("rmse", "are", "accuracy", "hr@1")] == [
        True,
        True,
        False,
        False,
    ]
