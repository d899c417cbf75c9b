"""Reasons and neighbors in words: what speaks for an item, and what the noise hides."""

from dataclasses import replace

import numpy as np
import pytest

import discreet as library
from discreet import load
from discreet.cli.output.answers import alike_by_design, show_explanation, show_similar, title_of
from discreet.models.answers import Explanation
from discreet.models.listings import SimilarItem
from followed_years import CHOICES, STARS, batch, year


class _Scorer:
    def item_vectors(self):
        return np.ones((3, 2))


class _Model:
    scorer = _Scorer()


@pytest.fixture
def said(capsys):
    return lambda: " ".join(capsys.readouterr().out.split())


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


def test_the_strongest_parts_are_told_in_words(said):
    found = explanation({"popularity": 2.0, "history": 1.0, "sequence": -0.5}, ((8, 0.9), (9, -0.2)))
    show_explanation(found, "Alien (7)", {8: {"title": "Aliens"}}, items=300)
    text = said()
    assert "Alien (7) is number 3 of the list, because many people choose it and it suits" in text
    assert "+2.00" in text and "-0.50" in text and "Aliens" in text and "3.50 against 1.00" in text


def test_a_history_that_hardly_matters_is_said_to(said):
    found = explanation({"popularity": 2.0, "history": 0.001}, ((8, 0.001),))
    show_explanation(found, "7", {}, items=300)
    text = said()
    assert "No single item of the own history" in text and "lifts it by" not in text
    assert "because many people choose it." in text


def test_the_sentence_does_not_name_a_history_that_hardly_matters(said):
    found = explanation({"popularity": 2.0, "history": 1.0}, ((8, 0.001),))
    show_explanation(found, "7", {}, items=300)
    text = said()
    assert "No single item" in text and "this person" not in text.partition("The lead is")[0]


def test_an_item_low_in_the_list_is_not_said_to_be_shown_to_everybody(said):
    found = replace(explanation({"popularity": -2.0, "history": -1e-6}, ((8, 0.001),)), rank=249)
    show_explanation(found, "7", {}, items=300)
    text = said()
    assert "No single item of the own history changes its score much" in text and "everybody" not in text
    # The table has no row for the history, so no sentence names it.
    assert "what speaks against it most: popularity." in text
    show_explanation(replace(found, rank=None), "7", {}, items=300)
    assert "already in the history" in said()


def test_a_list_that_is_meant_to_be_the_same_for_everybody_is_not_blamed_on_noise(said):
    found = explanation({"popularity": 2.0}, ((8, 0.0),), usual=1.0)
    show_explanation(found, "7", {}, items=300, noised=True, alike="All alike.")
    text = said()
    assert text.endswith("All alike.") and "Noise hides" not in text and "mostly popularity" not in text


@pytest.mark.parametrize("facts, kind", [(STARS, "both"), (STARS, "popularity"), (CHOICES, "both")])
def test_a_followed_list_is_said_to_be_the_same_for_everybody(tmp_path, facts, kind):
    week = batch([("ann", "i0", 5), ("bob", "i0", 4), ("bob", "i1", 1)], facts)
    text = alike_by_design(year(tmp_path, facts).add(week, kind=kind).model)
    assert text.startswith("A followed list is current popularity") and "less what they had" in text


def test_only_models_that_are_meant_to_be_alike_are_called_so(ratings, model):
    assert alike_by_design(load(model)) == ""
    popular = library.Popularity(epsilon=1).fit(ratings)
    assert alike_by_design(popular).startswith("A list of this model is popularity, the same for everybody")


def test_an_item_of_the_history_is_not_there_because_of_its_score(said):
    found = replace(explanation({"history": 1.0}, ((8, 0.9),)), rank=None)
    show_explanation(found, "7", {}, items=300)
    text = said()
    assert "7 is already in the history, and lists leave it out; its score is high because it suits" in text


def test_a_list_of_popular_items_is_said_to_be_one(said):
    found = explanation({"popularity": 2.0, "history": 1.0, "sequence": 0.0}, ((8, 0.9),), usual=0.8)
    show_explanation(found, "7", {}, noised=True, vague=True, items=300)
    text = said()
    assert "mostly popularity: 80% of its first 10 items" in text and "Noise hides the rest" in text
    assert "cannot tell which items are similar" in text and "sequence" not in text
    show_explanation(found, "7", {}, vague=True, items=300)
    text = said()
    assert "mostly popularity" in text and "oise" not in text
    show_explanation(replace(found, usual=0.4), "7", {}, noised=True, items=300)
    text = said()
    assert "mostly popularity" not in text and "single items" not in text


def test_neighbors_say_how_sure_and_what_is_not_known(said):
    near = [SimilarItem(8, 0.91234, 0.999), SimilarItem(9, 0.8, 0.7)]
    show_similar(_Model(), 7, near, 5, {7: {"title": "Alien"}, 8: {"title": "Aliens"}, 9: {"title": "Heat"}})
    text = said()
    assert "Similar to Alien (7):" in text and "> 99 %" in text and "70 %" in text and "0.91" in text
    assert (
        "all that the model released" in text
        and "so few latent factors" in text
        and "Only 2 of 5 stand out" in text
    )


def test_no_neighbors_does_not_say_that_there_are_none(said):
    show_similar(_Model(), 7, [], 5, {})
    assert "noise hides any similarity" in said()


def test_without_noise_nothing_is_said_about_it(said):
    show_similar(_Model(), 7, [SimilarItem(8, 0.9)], 1, {})
    text = said()
    assert "sure" not in text.lower() and "latent factors" in text


def test_a_title_comes_with_its_id():
    assert title_of(7, {7: {"title": "Alien", "year": "1979"}}) == "Alien (7)"
    assert title_of(7, {7: {"title": ""}}) == title_of(7, {}) == "7"
