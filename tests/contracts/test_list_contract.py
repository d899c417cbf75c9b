"""Lists are sorted by the score that they show, and explanations add up to it, for every model."""

import copy
import dataclasses
import pickle

import pytest

from contracts.families import mark
from discreet.model_settings import MODELS
from discreet.models.answers import ListedItem, SimilarItem
from discreet.testing import ScorerContract
from discreet.testing.small_data import fitted_once

# Published methods that release no counts; they say so.
WITHOUT_COUNTS = {"frank-wolfe-printed", "private-gradients"}
WITH_SIMILAR_ITEMS = {"ease", "item-knn", "markov-chain", "neighbours"}


def suite(name):
    words = "Test" + "".join(word.capitalize() for word in name.split("-"))
    checks = {
        "estimator": MODELS[name],
        "lists_by_stars": name in WITHOUT_COUNTS,
        "knows_similar_items": name in WITH_SIMILAR_ITEMS,
    }
    whole = type(words, (ScorerContract,), checks)
    return words, pytest.mark.thorough(whole) if mark(name) else whole


globals().update(map(suite, sorted(MODELS)))


def test_a_scorer_that_breaks_a_rule_is_rejected():
    """The twin: a class that is not registered, and lists in another order than is stated."""
    kind = MODELS["biases"]
    model = fitted_once(kind)

    class Foreign(type(model.scorer)):
        def worth(self, histories, rows):
            return -self.scores(histories, rows)

    fields = {field.name: getattr(model.scorer, field.name) for field in dataclasses.fields(model.scorer)}
    broken = dataclasses.replace(model, scorer=Foreign(**fields))
    checks = {"estimator": kind, "model": broken, "lists_by_stars": True, "knows_similar_items": True}
    one = type("Suite", (ScorerContract,), checks)()
    for check in (
        "test_its_kind_is_registered_and_its_parts_rebuild_it",
        "test_predicted_ratings_order_no_list_unless_it_says_so",
        "test_similar_items_are_certain_and_come_in_batches",
    ):
        with pytest.raises(AssertionError):
            getattr(one, check)()


def test_places_are_pairs_that_can_be_copied():
    for made in (ListedItem("a", 1.5, 4.0), SimilarItem("a", 0.5, 0.95), ListedItem(3, 1.0)):
        item, score = made
        assert (item, score) == made
        again = pickle.loads(pickle.dumps(copy.deepcopy(made)))
        assert again == made and vars(again) == vars(made) and repr(again) == repr(made)
