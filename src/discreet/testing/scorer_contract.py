"""Check that a scorer sorts by the score it shows, explains it, and is rebuilt from its declarations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import pytest

from discreet.core import SCORERS
from discreet.core.checks import DataError, DiscreetError
from discreet.data import Interactions
from discreet.models import BY_STARS, STARS, Estimator, FittedModel, ReleasedCells, build_scorer
from discreet.testing.small_data import fitted_once, timed_data


class ScorerContract:
    """The contract of the scorer of an estimator's models.

    `lists_by_stars` means that lists are ordered by predicted ratings, without counts.
    `knows_similar_items` means that the model must list similar items.

    Example:
        >>> from discreet import Popularity
        >>> class TestPopularityScorer(ScorerContract):
        ...     estimator = Popularity
        >>> TestPopularityScorer.lists_by_stars
        False

    Stability
        Stable.
    """

    estimator: ClassVar[type[Estimator]]
    lists_by_stars: ClassVar[bool] = False
    knows_similar_items: ClassVar[bool] = False

    @property
    def model(self) -> FittedModel:
        """Return a fitted model, which is fitted once for all checks."""
        model = fitted_once(self.estimator)
        if isinstance(model.scorer, ReleasedCells):
            pytest.skip("this release answers single cells of its own users, and spends on each")
        return model

    def history(self, row: int = 3) -> list[Any]:
        """Return a user's history, oldest first. Only items if the scorer needs no ratings."""
        data = timed_data()
        assert data.times is not None
        cells = np.arange(*data.indptr[row : row + 2])
        cells = cells[np.argsort(data.times[cells])]
        items: list[Any] = data.catalog.id_at(data.items[cells]).tolist()
        if not self.model.scorer.needs_ratings:
            return items
        return list(zip(items, data.values[cells].tolist(), strict=True))

    def test_its_kind_is_registered_and_its_parts_rebuild_it(self) -> None:
        scorer = self.model.scorer
        if scorer.kind not in SCORERS:
            pytest.skip("not registered; give it an entry point in the group discreet.scorers")
        assert SCORERS[scorer.kind] is type(scorer)
        assert set(scorer.arrays()) <= set(scorer.stored) and set(scorer.settings()) == set(scorer.constants)
        again = build_scorer(scorer.kind, scorer.arrays(), scorer.settings(), timed_data().n_items)
        rows = np.arange(4)
        np.testing.assert_array_equal(again.worth(timed_data(), rows), scorer.worth(timed_data(), rows))

    def test_parts_that_are_not_as_declared_are_refused(self) -> None:
        scorer, n_items = self.model.scorer, timed_data().n_items
        if scorer.kind not in SCORERS:
            pytest.skip("not registered; give it an entry point in the group discreet.scorers")
        arrays = scorer.arrays()
        wrong: list[dict[str, Any]] = [{**arrays, "one too many": np.zeros(3)}]
        for name, array in arrays.items():
            wrong += [{**arrays, name: array[None]}, {**arrays, name: "text"}]
            if np.issubdtype(array.dtype, np.floating) and array.size:
                wrong.append({**arrays, name: array * np.nan})
        for parts in wrong:
            with pytest.raises(DataError):
                build_scorer(scorer.kind, parts, scorer.settings(), n_items)

    def test_a_list_is_sorted_by_its_score_and_has_stars_beside_it(self) -> None:
        model, history = self.model, self.history()
        listed = model.recommend(history, 15)
        assert _falls(score for _, score in listed)
        assert all((one.stars is not None) == model.scorer.predicts_stars for one in listed)
        stars = [one.stars for one in listed if one.stars is not None]
        assert all(model.facts.low <= one <= model.facts.high for one in stars)
        frame = model.recommend_all(timed_data().select_users(np.array([3, 20])), 15)
        assert (STARS in frame.columns) == model.scorer.predicts_stars
        for _, mine in frame.group_by("user"):
            assert mine.sort("rank")["score"].is_sorted(descending=True)
        for by in model.scorer.rankings:
            assert _falls(score for _, score in model.recommend(history, 15, rank_by=by))

    def test_a_diversified_list_falls_as_well(self) -> None:
        try:
            listed = self.model.recommend(self.history(), 15, diversify=0.5)
        except DiscreetError:
            pytest.skip("this model can't determine which items are similar")
        assert _falls(score for _, score in listed)

    @pytest.mark.parametrize("row", [3, 77])
    def test_parts_add_up_to_the_score_that_is_shown(self, row: int) -> None:
        model, history = self.model, self.history(row)
        for rank, (item, score) in enumerate(model.recommend(history, 10), start=1):
            found = model.explain(history, item)
            assert found.score == pytest.approx(score, rel=1e-6, abs=1e-6) and found.rank == rank
            total = found.reference + math.fsum(found.parts.values())
            assert total == pytest.approx(found.score, rel=1e-9, abs=1e-9)
            assert max(found.parts.values()) >= -1e-9 and 0 <= found.usual <= 1
            assert len(found) == len(history)

    def test_a_user_of_the_data_is_explained_by_their_own_row(self) -> None:
        """A user that the release knows has other reasons than a stranger with the same history."""
        model = self.model
        if not {"users", "people"} & set(model.scorer.stored):
            pytest.skip("this release knows no user: every user is new to it")
        name, history = timed_data().users.ids[3], self.history()
        item, score = model.recommend(history, 3, user=name)[2]
        found = model.explain(history, item, user=name)
        assert found.score == pytest.approx(score, rel=1e-6) and found.rank == 3 and not found.reasons
        assert found.reference + math.fsum(found.parts.values()) == pytest.approx(found.score, rel=1e-9)

    def test_predicted_ratings_order_no_list_unless_it_says_so(self) -> None:
        """A list isn't sorted by the ratings next to it, except for releases without counts."""
        model = self.model
        if not (model.scorer.predicts_stars or model.above is not None):
            pytest.skip("this model predicts no ratings")
        assert (model.scorer.ranked_by == BY_STARS) == self.lists_by_stars
        usual = model.worth(timed_data(), np.arange(20))
        same = np.array_equal(usual, model.scorer.scores(timed_data(), np.arange(20)))
        assert same == self.lists_by_stars

    def test_similar_items_are_certain_and_come_in_batches(self) -> None:
        model, items = self.model, timed_data().catalog.ids.tolist()[:4]
        try:
            found = model.similar_items(items, 5)
        except DiscreetError:
            assert not self.knows_similar_items
            return
        assert list(found) == items
        for item, near in found.items():
            assert near == model.similar_items(item, 5) and len(near) <= 5 and item not in dict(near)
            assert _falls(similarity for _, similarity in near)
            certain = [one.above_noise for one in near]
            assert all(one is None or 0.6 <= one <= 1 for one in certain)
            assert not model.guarantee.is_private or None not in certain
        with pytest.raises(DataError):
            model.similar_items(["no such item"])

    def test_histories_are_left_alone(self) -> None:
        data: Interactions = timed_data()
        before = [data.items.copy(), data.values.copy()]
        self.model.scorer.worth(data, np.arange(5))
        assert all(np.array_equal(a, b) for a, b in zip(before, (data.items, data.values), strict=True))


def _falls(numbers: Iterable[float]) -> bool:
    return all(one >= other for one, other in itertools.pairwise(numbers))
