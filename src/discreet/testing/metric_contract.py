"""Check that a metric is bounded, has the direction it states, and treats all users and orders alike."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from discreet.core import METRICS, Floats, Indices
from discreet.evaluation.list_scores import person_scores
from discreet.evaluation.metrics import (
    AnyMetric,
    EachListMetric,
    ListMetric,
    Metric,
    RatingMetric,
    ShownMetric,
)
from discreet.evaluation.ranking_metrics import Ranks
from discreet.evaluation.shown_metrics import ListContext
from discreet.testing.small_data import toy_interactions

_K = 5


class MetricContract:
    """The contract of one metric of any kind.

    Example:
        >>> from discreet.evaluation.ranking_metrics import NDCG
        >>> class TestNdcg(MetricContract):
        ...     metric = NDCG
        >>> TestNdcg().test_its_name_can_be_asked_for()

    Stability
        Stable.
    """

    metric: ClassVar[AnyMetric]

    def list_scores(self, ranks: Ranks) -> Floats:
        """Return a list metric for each user, with a depth of 5."""
        if not isinstance(self.metric, ListMetric):
            pytest.skip("it does not score lists one by one")
        return np.asarray(self.metric.function(ranks, _K))

    def rating_score(self, predicted: Floats, actual: Floats) -> float:
        """Return a rating metric on a scale from 1 to 5."""
        if not isinstance(self.metric, RatingMetric):
            pytest.skip("it does not compare ratings")
        how = {"above": 3.0, "cut": None} if self.metric.binary else {}
        return self.metric.function(predicted, actual, **how)

    def test_its_name_can_be_asked_for(self) -> None:
        assert re.fullmatch(r"[a-z][a-z0-9-]*", self.metric.name)
        assert self.metric.usual_depth is None or self.metric.usual_depth >= 1
        if isinstance(self.metric, ListMetric):
            assert self.metric.usual_depth is not None or not self.metric.needs_depth
        if self.metric.name not in METRICS:
            pytest.skip("not registered; give it an entry point in the group discreet.metrics")
        asked = Metric.parse(self.metric.example)
        assert asked.definition is self.metric and str(asked) == self.metric.example

    def test_private_evaluation_can_use_what_says_so(self) -> None:
        if not self.metric.private:
            pytest.skip("it is not for private evaluation")
        # Other metrics aren't means of a number between 0 and 1 for each user.
        assert isinstance(self.metric, ListMetric) or self.metric.name == "rmse"

    def test_lists_have_one_score_between_0_and_1_for_each_user(self) -> None:
        for seed in range(20):
            ranks = drawn_ranks(seed)
            scores = self.list_scores(ranks)
            assert scores.shape == ranks.starts.shape
            assert np.isfinite(scores).all() and np.all((scores >= -1e-12) & (scores <= 1 + 1e-12))

    def test_the_score_of_a_user_does_not_depend_on_others(self) -> None:
        ranks = drawn_ranks(1)
        together = self.list_scores(ranks)
        for user, (start, size) in enumerate(zip(ranks.starts, ranks.sizes, strict=True)):
            own = slice(start, start + size)
            alone = Ranks(starts=np.zeros(1, np.int64), better=ranks.better[own], tied=ranks.tied[own])
            np.testing.assert_allclose(self.list_scores(alone)[0], together[user], rtol=1e-12, atol=1e-15)

    def test_the_order_of_held_out_items_does_not_matter(self) -> None:
        ranks = drawn_ranks(2)
        backwards = np.concatenate(
            [
                np.arange(start, start + size)[::-1]
                for start, size in zip(ranks.starts, ranks.sizes, strict=True)
            ]
        )
        turned = Ranks(starts=ranks.starts, better=ranks.better[backwards], tied=ranks.tied[backwards])
        np.testing.assert_allclose(self.list_scores(turned), self.list_scores(ranks), rtol=1e-12, atol=1e-15)

    def test_ties_are_averaged_over_all_orders(self) -> None:
        """One held-out item that ties with others has the mean of the scores at each of its ranks."""
        for better, tied in ((0, 3), (3, 4), (1, 1), (7, 2)):
            each = [float(self.list_scores(_one(rank, 1))[0]) for rank in range(better, better + tied)]
            assert float(self.list_scores(_one(better, tied))[0]) == pytest.approx(np.mean(each), abs=1e-12)

    def test_a_better_rank_is_never_worse(self) -> None:
        sign = -1 if self.metric.lower_is_better else 1
        scores = [sign * float(self.list_scores(_one(rank, 1))[0]) for rank in range(10)]
        assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]

    def test_right_ratings_score_better_than_wrong_ones(self) -> None:
        actual = np.random.default_rng(3).integers(1, 6, 200).astype(np.float64)
        sign = -1 if self.metric.lower_is_better else 1
        right, wrong = (self.rating_score(guess, actual) for guess in (actual, 6 - actual))
        assert np.isfinite([right, wrong]).all() and sign * right > sign * wrong

    def test_a_mean_over_ratings_is_the_metric(self) -> None:
        if not isinstance(self.metric, RatingMetric) or self.metric.of_error is None:
            pytest.skip("it is not a mean over ratings")
        rng = np.random.default_rng(4)
        predicted, actual = rng.uniform(1, 5, 200), rng.integers(1, 6, 200).astype(np.float64)
        error = np.abs(predicted - actual) / 4.0
        if self.metric.binary:
            error = ((predicted > 3.0) != (actual > 3.0)).astype(np.float64)
        each = self.metric.of_error(error)
        assert np.all((each >= 0) & (each <= 1))
        from_mean = self.metric.from_mean(float(np.mean(each)), 4.0)
        assert from_mean == pytest.approx(self.rating_score(predicted, actual), rel=1e-12)

    def test_shown_lists_have_one_finite_score_whatever_items_are_called(self) -> None:
        if not isinstance(self.metric, ShownMetric):
            pytest.skip("it does not score all lists together")
        data = toy_interactions(n_users=30)
        order = np.random.default_rng(5).permutation(data.n_items)
        lists = np.random.default_rng(6).integers(0, 9, data.n_items)
        plain = self.metric.function(lists, data)
        moved = self.metric.function(lists[order], data.select_items(order))
        assert np.isfinite(plain) and moved == pytest.approx(plain, rel=1e-12)
        assert np.isfinite(self.metric.function(np.zeros(data.n_items, np.int64), data))

    def each_list(self, lists: Indices, users: Indices, context: ListContext) -> Floats:
        """Return the score of each shown list."""
        if not isinstance(self.metric, EachListMetric):
            pytest.skip("it does not score the items of lists")
        return np.asarray(self.metric.function(lists, users, context))

    def test_shown_lists_have_a_score_each_that_others_do_not_change(self) -> None:
        lists, users, context = drawn_lists()
        together = self.each_list(lists, users, context)
        assert together.shape == users.shape and np.isfinite(together).any()
        assert np.all(together[np.isfinite(together)] >= 0)
        for place in range(users.size):
            alone = self.each_list(lists[place : place + 1], users[place : place + 1], context)
            np.testing.assert_allclose(alone, together[place : place + 1], rtol=1e-9, atol=1e-12)

    def test_names_and_the_order_in_a_shown_list_do_not_matter(self) -> None:
        lists, users, context = drawn_lists()
        plain = self.each_list(lists, users, context)
        np.testing.assert_allclose(
            self.each_list(lists[:, ::-1], users, context), plain, rtol=1e-9, atol=1e-12
        )
        order = np.random.default_rng(9).permutation(context.train.n_items)
        places = np.append(np.argsort(order), -1)
        assert context.words is not None
        moved = ListContext(context.train.select_items(order), context.words[order])
        again = self.each_list(places[lists], users, moved)
        np.testing.assert_allclose(again, plain, rtol=1e-9, atol=1e-12)

    def test_a_list_without_items_has_no_score(self) -> None:
        lists, users, context = drawn_lists()
        assert np.isnan(self.each_list(np.full_like(lists, -1), users, context)).all()

    def test_lists_are_scored_by_its_name(self) -> None:
        if not isinstance(self.metric, ListMetric) or self.metric.name not in METRICS:
            pytest.skip("it does not score lists one by one, or is not registered")
        ranks = drawn_ranks(7)
        np.testing.assert_array_equal(
            person_scores(Metric(self.metric.name, _K), ranks), self.list_scores(ranks)
        )


def drawn_lists() -> tuple[Indices, Indices, ListContext]:
    """Return lists of some users, one of them short, with data and words to compare them with."""
    data = toy_interactions(n_users=30)
    rng = np.random.default_rng(8)
    users = np.sort(rng.choice(data.n_users, 12, replace=False))
    lists = np.array([rng.choice(data.n_items, _K, replace=False) for _ in users])
    lists[0, 2:] = -1
    words = sp.csr_matrix((rng.random((data.n_items, 6)) < 0.4).astype(np.float64))
    lengths = np.sqrt(np.maximum(np.diff(words.indptr), 1))
    return lists, users, ListContext(data, sp.csr_matrix(sp.diags(1 / lengths) @ words))


def drawn_ranks(seed: int) -> Ranks:
    """Return the ranks of several users' held-out items among 12 candidates, with ties."""
    rng = np.random.default_rng(seed)
    better, tied, starts, filled = [], [], [], 0
    for _ in range(8):
        scores = rng.integers(0, 4, 12)
        held_out = rng.choice(12, int(rng.integers(1, 5)), replace=False)
        starts.append(filled)
        filled += held_out.size
        better += [int(np.count_nonzero(scores > scores[item])) for item in held_out]
        tied += [int(np.count_nonzero(scores == scores[item])) for item in held_out]
    return Ranks(starts=np.array(starts), better=np.array(better), tied=np.array(tied))


def _one(better: int, tied: int) -> Ranks:
    return Ranks(starts=np.zeros(1, np.int64), better=np.array([better]), tied=np.array([tied]))
