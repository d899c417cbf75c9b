"""A scale chosen with noise: the narrowest that holds nearly everybody, and nobody's own extreme."""

import math

import numpy as np
import pytest

import discreet
from assumption_examples import stated
from budgets import budget
from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models.private_catalog import (
    USUAL_SCALES,
    PrivateCatalog,
    PrivateFacts,
    PrivateScale,
    narrowest,
)
from discreet.models.storage import read_label
from discreet.privacy.guarantee import Fact, Kind
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.mechanisms.additive import Laplace
from discreet.privacy.session import Session
from discreet.testing import refuses

SIMULATED = PrivacyRandom.simulate


def rated(low, high, step, people=3000, extra=()):
    """Return people who use a whole scale, and one with further ratings."""
    levels = np.arange(low, high + step / 2, step)
    users = np.repeat(np.arange(people), 6)
    values = np.random.default_rng(0).choice(levels, users.size)
    items = np.tile(np.arange(6), people)
    return Interactions.from_arrays(
        [*users, *[people] * len(extra)], [*items, *range(len(extra))], [*values, *extra]
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("scale", "step"),
    [((1, 5), 1), ((0.5, 5), 0.5), ((0, 5), 1), ((0, 1), 1), ((1, 10), 1), ((0, 100), 5), ((-10, 10), 0.5)],
)
def test_usual_scales_are_found(scale, step):
    for seed in range(5):
        session = Session.open(rated(*scale, step), budget(0.2), SIMULATED(seed))
        assert PrivateScale(epsilon=0.2).choose(session) == scale


def test_nobody_stretches_it_and_few_are_clipped():
    alone = rated(1, 5, 1, extra=(100.0, -1e30))
    assert alone.facts.high == 100.0, "the twin: read off the data, one person is enough"
    for seed in range(20):
        session = Session.open(alone, budget(1.0), SIMULATED(seed))
        assert PrivateScale(epsilon=1.0).choose(session) == (1.0, 5.0)
    model = discreet.Biases(epsilon=1.0).fit(
        alone, select_items=PrivateCatalog(epsilon=1.0, delta=1e-6), select_scale=PrivateScale(epsilon=0.5)
    )
    assert (model.facts.low, model.facts.high, model.facts.step) == (1.0, 5.0, None)


def test_a_crowd_outside_is_not_clipped():
    votes = np.zeros(len(USUAL_SCALES) + 1)
    votes[2], votes[3] = 970, 30
    assert narrowest(votes, 0.1) == (0.5, 5.0)
    votes[2], votes[3] = 995, 5
    assert narrowest(votes, 0.1) == (1.0, 5.0)
    votes[-1] = 500
    assert narrowest(votes, 0.1) == USUAL_SCALES[-1]
    with refuses("selection-too-small", what="scale"):
        narrowest(votes / 1000, 0.1)


def chances(epsilon, outside, runs=3000):
    """Return how often half stars are clipped when so many of 20 000 people gave some."""
    votes = np.zeros(len(USUAL_SCALES) + 1)
    votes[2], votes[3] = 20_000 - outside, outside
    noise = Laplace.calibrated(epsilon=epsilon, l1_sensitivity=1.0)
    noisy = noise.release(np.tile(votes, (runs, 1)), SIMULATED(outside))
    # The rule as for epsilon 1, whatever the noise is.
    return np.mean([narrowest(row, math.sqrt(2)) == (1.0, 5.0) for row in noisy])


def limit():
    """Return how many people outside are as likely clipped as not."""
    missed = sum(not (low >= 1.0 and high <= 5.0) for low, high in USUAL_SCALES) + 1
    return 200 + 3 * math.sqrt(2) * math.sqrt(missed)


def test_one_person_more_changes_the_odds_by_no_more_than_promised():
    for place in (-4, 0, 4):
        here = chances(1.0, round(limit()) + place)
        there = chances(1.0, round(limit()) + place + 1)
        room = 4 * math.sqrt(0.25 / 3000)
        assert here <= math.e * there + room and (1 - there) <= math.e * (1 - here) + room


def test_too_little_noise_would_be_caught():
    """The twin: with a twentieth of the noise one person decides."""
    places = [round(limit()) + place for place in (-2, -1, 0, 1, 2)]
    found = [(chances(20.0, place, 400), chances(20.0, place + 1, 400)) for place in places]
    assert any(here > math.e * there + 0.2 for here, there in found)


def test_the_price_is_paid_recorded_saved_and_shown(tmp_path, snapshot):
    data, ledger = rated(1, 5, 1), Ledger.in_memory()
    choices = {
        "select_items": PrivateCatalog(epsilon=0.5, delta=5e-7),
        "select_scale": PrivateScale(epsilon=0.25),
    }
    model = discreet.Biases(epsilon=0.25, delta=5e-7).fit(data, ledger=ledger, **choices)
    assert ledger.spent(data.name) == (1.0, 1e-6) and model.guarantee.conditions == ()
    kinds = [event["kind"] for event in ledger.entries()[0].events]
    assert kinds == ["LaplaceDpEvent", "GaussianDpEvent", "FailureEvent", "GaussianDpEvent"]
    assert ledger.recounted(data.name, 1e-6) <= 1.0
    model.save(tmp_path / "m")
    again, label = discreet.load(tmp_path / "m"), read_label(tmp_path / "m")
    assert again.guarantee == model.guarantee and again.facts == model.facts
    assert "1 to 5, chosen" in label["provenance"]["scale"]
    assert (Kind.SELECTED, Fact.SCALE) in stated(model.guarantee)
    assert all(note in model.guarantee.label() for note in model.guarantee.notes)
    snapshot("\n".join(model.guarantee.notes))


def test_the_promise_does_not_tell_the_data_s_extremes():
    facts = [rated(1, 5, 1, people=60, extra=extra).facts for extra in ((), (77.0,))]
    chosen = PrivateFacts(scale=PrivateScale(epsilon=1.0))
    assert facts[0] != facts[1] and chosen.before(facts[0]) == chosen.before(facts[1])


def test_a_declared_scale_is_not_chosen():
    declared = rated(1, 5, 1).with_facts(PublicFacts(n_items=6, low=1, high=5))
    ledger = Ledger.in_memory()
    with refuses("scale-declared"):
        discreet.Biases(epsilon=1.0).fit(declared, select_scale=PrivateScale(epsilon=1.0), ledger=ledger)
    with pytest.raises(ParameterError):
        PrivateScale(epsilon=0.0)
    assert ledger.entries() == []
