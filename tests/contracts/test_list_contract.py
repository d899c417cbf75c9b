"""Lists are sorted by the score that they show, and explanations add up to it, for every model."""

import itertools
import math

import numpy as np
import pytest

from discreet.core.checks import DataError, DiscreetError
from discreet.models.answers import ListedItem, SimilarItem
from discreet.models.lists import STARS
from discreet.models.scorers.counts import BY_STARS
from discreet.models.scorers.one_bit import ReleasedCells
from discreet.recipes import MODELS

# Published methods that release no counts; they say so.
WITHOUT_COUNTS = {"frank-wolfe-printed", "private-gradients"}
NAMES = sorted(MODELS)


@pytest.fixture
def model(request, fitted):
    model = fitted(request.param)
    if isinstance(model.scorer, ReleasedCells):
        pytest.skip("this release answers single cells of its own people, and pays for each")
    return model


def newcomer(model, timed, row=3):
    """Return a history, oldest first, and its items in any order."""
    cells = np.arange(*timed.indptr[row : row + 2])
    cells = cells[np.argsort(timed.times[cells])]
    items = timed.catalog.id_at(timed.items[cells]).tolist()
    if not model.scorer.needs_ratings:
        return items
    return list(zip(items, timed.values[cells].tolist(), strict=True))


def falls(numbers):
    return all(one >= other for one, other in itertools.pairwise(numbers))


@pytest.mark.parametrize("model", NAMES, indirect=True)
def test_a_list_is_sorted_by_its_score_and_has_stars_beside_it(model, timed):
    history = newcomer(model, timed)
    listed = model.recommend(history, 15)
    assert falls([score for _, score in listed])
    assert all((one.stars is not None) == model.scorer.predicts_stars for one in listed)
    stars = [one.stars for one in listed if one.stars is not None]
    assert all(model.facts.low <= one <= model.facts.high for one in stars)
    frame = model.recommend_all(timed.select_users([3, 20]), 15)
    assert (STARS in frame.columns) == model.scorer.predicts_stars
    for _, mine in frame.group_by("user"):
        assert mine.sort("rank")["score"].is_sorted(descending=True)
    for by in model.scorer.rankings:
        assert falls([score for _, score in model.recommend(history, 15, rank_by=by)])


@pytest.mark.parametrize("model", NAMES, indirect=True)
def test_a_diversified_list_falls_as_well(model, timed):
    try:
        listed = model.recommend(newcomer(model, timed), 15, diversify=0.5)
    except DiscreetError as error:
        assert "similar" in str(error) or "factors" in str(error)
        pytest.skip("this model cannot say which items are similar")
    assert falls([score for _, score in listed])


@pytest.mark.parametrize("model", NAMES, indirect=True)
@pytest.mark.parametrize("row", [3, 77])
def test_parts_add_up_to_the_score_that_is_shown(model, timed, row):
    history = newcomer(model, timed, row)
    listed = model.recommend(history, 10)
    for rank, (item, score) in enumerate(listed, start=1):
        found = model.explain(history, item)
        assert found.score == pytest.approx(score, rel=1e-6, abs=1e-6) and found.rank == rank
        total = found.reference + math.fsum(found.parts.values())
        assert total == pytest.approx(found.score, rel=1e-9, abs=1e-9)
        assert max(found.parts.values()) >= -1e-9
        assert len(found) == len(history)


@pytest.mark.parametrize("model", NAMES, indirect=True)
def test_a_person_of_the_data_is_explained_by_their_own_row(model, timed):
    """Whom the release knows has other reasons than a stranger with the same history."""
    if not {"users", "people"} & set(model.scorer.stored):
        pytest.skip("this release knows nobody: everybody is a newcomer to it")
    name, history = timed.users.ids[3], newcomer(model, timed)
    item, score = model.recommend(history, 3, user=name)[2]
    found = model.explain(history, item, user=name)
    assert found.score == pytest.approx(score, rel=1e-6) and found.rank == 3 and not found.reasons
    assert found.reference + math.fsum(found.parts.values()) == pytest.approx(found.score, rel=1e-9)


@pytest.mark.parametrize("model", NAMES, indirect=True)
def test_stars_alone_are_nobodys_list_unless_it_says_so(model, timed):
    """The order of a list is not that of the ratings beside it, but for releases that hold no counts."""
    if not (model.scorer.predicts_stars or model.above is not None):
        pytest.skip("this model predicts no ratings")
    assert (model.scorer.ranked_by == BY_STARS) == (model.name in WITHOUT_COUNTS)
    usual = model.worth(timed, np.arange(20))
    same = np.array_equal(usual, model.scorer.scores(timed, np.arange(20)))
    assert same == (model.name in WITHOUT_COUNTS)


@pytest.mark.parametrize("model", NAMES, indirect=True)
def test_neighbors_are_sure_and_come_in_batches(model, timed):
    items = timed.catalog.ids.tolist()[:4]
    try:
        found = model.similar_items(items, 5)
    except DiscreetError as error:
        assert "similar" in str(error)
        assert model.name not in ("ease", "item-knn", "neighbours")
        return
    assert list(found) == items
    for item, near in found.items():
        assert near == model.similar_items(item, 5) and len(near) <= 5 and item not in dict(near)
        assert falls([similarity for _, similarity in near])
        sure = [one.confidence for one in near]
        assert all(one is None or 0.6 <= one <= 1 for one in sure)
        assert not model.guarantee.is_private or None not in sure
    with pytest.raises(DataError, match="not in the model's catalog"):
        model.similar_items(["no such item"])


def test_places_are_pairs_that_can_be_copied():
    import copy
    import pickle

    for made in (ListedItem("a", 1.5, 4.0), SimilarItem("a", 0.5, 0.95), ListedItem(3, 1.0)):
        item, score = made
        assert (item, score) == made
        again = pickle.loads(pickle.dumps(copy.deepcopy(made)))
        assert again == made and vars(again) == vars(made) and repr(again) == repr(made)
