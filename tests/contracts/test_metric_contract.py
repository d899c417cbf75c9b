"""What every registered metric must hold to; a new one is found by itself."""

import numpy as np
import pytest

from discreet.core.registry import METRICS
from discreet.evaluation.metrics import EachListMetric, ListMetric, RatingMetric, ShownMetric, metric_kind
from discreet.testing import MetricContract


def suite(name):
    words = "Test" + "".join(word.capitalize() for word in name.split("-"))
    return words, type(words, (MetricContract,), {"metric": metric_kind(name)})


globals().update(suite(name) for name in METRICS.built_in)


def rejected(metric, check):
    one = type("Suite", (MetricContract,), {"metric": metric})()
    with pytest.raises(AssertionError):
        getattr(one, check)()


def first_at_best(ranks, k):
    """Take ties for the best."""
    return (np.minimum.reduceat(ranks.better, ranks.starts) == 0).astype(float)


@pytest.mark.parametrize(
    ("function", "check"),
    [
        (first_at_best, "test_ties_are_averaged_over_all_orders"),
        (
            lambda ranks, k: ranks.sizes.astype(float),
            "test_lists_have_one_score_between_0_and_1_for_each_user",
        ),
        (lambda ranks, k: ranks.better / 99, "test_lists_have_one_score_between_0_and_1_for_each_user"),
        (
            lambda ranks, k: ranks.sizes / ranks.sizes.sum(),
            "test_the_score_of_a_user_does_not_depend_on_others",
        ),
        (
            lambda ranks, k: 1 / (1 + ranks.better[ranks.starts]),
            "test_the_order_of_held_out_items_does_not_matter",
        ),
        (lambda ranks, k: ranks.better[ranks.starts] / 99, "test_a_better_rank_is_never_worse"),
    ],
)
def test_a_list_metric_that_breaks_a_rule_is_rejected(function, check):
    rejected(ListMetric(name="twin", usual_depth=5, function=function), check)


def test_other_metrics_that_break_a_rule_are_rejected():
    def error(predicted, actual):
        return float(np.mean(np.abs(predicted - actual)))

    rejected(RatingMetric(name="twin", function=error), "test_right_ratings_score_better_than_wrong_ones")
    squared = RatingMetric(name="twin", lower_is_better=True, function=error, of_error=np.square)
    rejected(squared, "test_a_mean_over_ratings_is_the_metric")
    rejected(RatingMetric(name="Twin One", function=error), "test_its_name_can_be_asked_for")
    shown = ShownMetric(
        name="twin", usual_depth=5, private=True, function=lambda lists, train: float(lists[0])
    )
    rejected(shown, "test_shown_lists_have_one_finite_score_whatever_items_are_called")
    rejected(shown, "test_private_evaluation_can_use_what_says_so")


@pytest.mark.parametrize(
    ("function", "check"),
    [
        (
            lambda lists, users, context: np.full(users.size, float(users.size)),
            "test_shown_lists_have_a_score_each_that_others_do_not_change",
        ),
        (
            lambda lists, users, context: -np.ones(users.size),
            "test_shown_lists_have_a_score_each_that_others_do_not_change",
        ),
        (
            lambda lists, users, context: lists[:, 0].astype(float),
            "test_names_and_the_order_in_a_shown_list_do_not_matter",
        ),
        (
            lambda lists, users, context: lists.max(axis=1).astype(float),
            "test_names_and_the_order_in_a_shown_list_do_not_matter",
        ),
        (lambda lists, users, context: np.ones(users.size), "test_a_list_without_items_has_no_score"),
    ],
)
def test_a_metric_of_shown_lists_that_breaks_a_rule_is_rejected(function, check):
    rejected(EachListMetric(name="twin", usual_depth=5, function=function), check)
