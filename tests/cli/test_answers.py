"""Reasons and neighbors in words: what speaks for an item, and what the noise hides."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as library
from discreet import load
from discreet.cli.recommend import alike_by_design, show_explanation, show_similar, title_of
from discreet.models.answers import Explanation, Listing, SimilarItem, nothing_similar
from followed_years import CHOICES, STARS, batch, year


class _Scorer:
    def item_vectors(self):
        return np.ones((3, 2))


class _Model:
    scorer = _Scorer()


@pytest.fixture
def said(capsys):
    return lambda: capsys.readouterr().out


def explanation(parts, reasons, usual=0.2):
    lead = sum(parts.values())
    return Explanation(
        item=7,
        score=1 + lead,
        reference=1.0,
        parts=parts,
        reasons=reasons,
        ranked_by="counts",
        rank=3,
        usual=usual,
    )


def test_the_strongest_parts_are_told_in_words(said, snapshot):
    found = explanation({"popularity": 2.0, "history": 1.0, "sequence": -0.5}, ((8, 0.9), (9, -0.2)))
    show_explanation(found, "Alien (7)", {8: {"title": "Aliens"}}, items=300)
    snapshot(said())


def test_a_history_that_hardly_matters_is_said_to(said, snapshot):
    found = explanation({"popularity": 2.0, "history": 0.001}, ((8, 0.001),))
    show_explanation(found, "7", {}, items=300)
    snapshot(said())


def test_the_sentence_does_not_name_a_history_that_hardly_matters(said, snapshot):
    found = explanation({"popularity": 2.0, "history": 1.0}, ((8, 0.001),))
    show_explanation(found, "7", {}, items=300)
    snapshot(said())


def test_an_item_low_in_the_list_is_not_said_to_be_shown_to_everybody(said, snapshot):
    found = replace(explanation({"popularity": -2.0, "history": -1e-6}, ((8, 0.001),)), rank=249)
    show_explanation(found, "7", {}, items=300)
    # The table has no row for the history, so no sentence names it.
    snapshot(said())
    show_explanation(replace(found, rank=None), "7", {}, items=300)
    snapshot(said())


def test_a_list_that_is_meant_to_be_the_same_for_everybody_is_not_blamed_on_noise(said, snapshot):
    found = explanation({"popularity": 2.0}, ((8, 0.0),), usual=1.0)
    show_explanation(found, "7", {}, items=300, noised=True, alike="All alike.")
    snapshot(said())


@pytest.mark.parametrize("facts, kind", [(STARS, "both"), (STARS, "popularity"), (CHOICES, "both")])
def test_a_followed_list_is_said_to_be_the_same_for_everybody(tmp_path, snapshot, facts, kind):
    week = batch([("ann", "i0", 5), ("bob", "i0", 4), ("bob", "i1", 1)], facts)
    snapshot(alike_by_design(year(tmp_path, facts).add(week, kind=kind).model))


def test_only_models_that_are_meant_to_be_alike_are_called_so(ratings, model, snapshot):
    factors = library.UserFactorization(epsilon=1, purpose="ratings").fit(ratings)
    assert alike_by_design(factors) == ""
    # More users or a larger epsilon wouldn't change the order of a model without factors.
    snapshot(alike_by_design(load(model)))
    snapshot(alike_by_design(library.Popularity(epsilon=1).fit(ratings)))


def test_an_item_of_the_history_is_not_there_because_of_its_score(said, snapshot):
    found = replace(explanation({"history": 1.0}, ((8, 0.9),)), rank=None)
    show_explanation(found, "7", {}, items=300)
    snapshot(said())


def test_a_list_of_popular_items_is_said_to_be_one(said, snapshot):
    found = explanation({"popularity": 2.0, "history": 1.0, "sequence": 0.0}, ((8, 0.9),), usual=0.8)
    show_explanation(found, "7", {}, noised=True, vague=True, items=300)
    snapshot(said())
    # Without noise it isn't blamed, and lists that aren't popularity get no remark.
    show_explanation(found, "7", {}, vague=True, items=300)
    snapshot(said())
    show_explanation(replace(found, usual=0.4), "7", {}, noised=True, items=300)
    snapshot(said())


def test_neighbors_say_how_sure_and_what_is_not_known(said, snapshot):
    near = [SimilarItem(8, 0.91234, 0.999), SimilarItem(9, 0.8, 0.7)]
    show_similar(_Model(), 7, near, 5, {7: {"title": "Alien"}, 8: {"title": "Aliens"}, 9: {"title": "Heat"}})
    snapshot(said())


def test_no_neighbors_does_not_say_that_there_are_none(said, snapshot):
    show_similar(_Model(), 7, Listing((), why_empty=nothing_similar(7)), 5, {})
    snapshot(said())


def test_without_noise_nothing_is_said_about_it(said, snapshot):
    show_similar(_Model(), 7, [SimilarItem(8, 0.9)], 1, {})
    snapshot(said())


def test_a_title_comes_with_its_id():
    assert title_of(7, {7: {"title": "Alien", "year": "1979"}}) == "Alien (7)"
    assert title_of(7, {7: {"title": ""}}) == title_of(7, {}) == "7"
