"""Data so small or so narrow that a computation once broke after the promise was paid for."""

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.models.biases import Biases
from discreet.models.popularity import Popularity
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.papers.collection.nuclear import LocalNuclear, LocalNuclearPlain
from discreet.papers.frank_wolfe.projected_gradient import ProjectedGradient
from discreet.privacy.ledger.ledger import Ledger
from discreet.solvers.low_rank.matrix import threshold
from discreet.testing import refuses


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [LocalNuclear, LocalNuclearPlain])
def test_nothing_reported_is_no_error(kind):
    lonely = Interactions.from_arrays(
        [0], [0], [3.0], low=1, high=5, step=1, n_items=2, people=Vocabulary.of([0, 1])
    )
    for seed in range(40):
        model = kind(epsilon=8.0).fit(lonely, random=PrivacyRandom.simulate(seed))
        assert np.isfinite(model.scores(lonely, np.arange(2))).all()


def test_a_radius_lost_to_rounding_leaves_nothing():
    assert threshold(np.array([1e30, 1e12]), 5.0) == 1e30
    assert threshold(np.array([3.0, 1.0]), 2.0) == 1.0


def narrow():
    values = np.where(np.arange(40) % 3, 1, -1) * 1e-30
    return Interactions.from_arrays(
        np.arange(40) % 5, np.arange(40) // 5, values, low=-1e-30, high=1e-30, n_items=8
    )


def test_a_row_bound_far_beyond_a_narrow_scale_is_no_error():
    for seed in range(10):
        model = ProjectedGradient(epsilon=8.0, row_bound=1.0, rounds=1)
        model.fit(narrow(), random=PrivacyRandom.simulate(seed))


def test_a_scale_that_single_precision_cannot_square_is_refused_before_paying():
    ledger = Ledger.in_memory()
    with refuses("scale-too-wide", width=2e-30):
        LocalNuclear(epsilon=2.0).fit(narrow(), random=PrivacyRandom.simulate(1), ledger=ledger)
    assert ledger.entries() == []


@pytest.mark.parametrize("kind", [Biases, UserFactorization])
def test_a_scale_of_one_value_is_refused_before_paying(kind):
    equal = Interactions.from_arrays([0, 0, 1], [0, 1, 1], [3.0] * 3, low=3, high=3, n_items=2)
    ledger = Ledger.in_memory()
    with refuses("scale-too-small", low=3.0, high=3.0):
        kind(epsilon=2.0).fit(equal, ledger=ledger)
    assert ledger.entries() == []
    # The twin: lists need no scale.
    UserFactorization(epsilon=2.0, purpose="lists").fit(equal, ledger=ledger)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("kind", [Biases, Popularity, UserFactorization])
def test_a_catalog_of_one_item_is_refused_before_paying(kind):
    single = Interactions.from_arrays([0, 1], [0, 0], [3.0, 4.0], low=1, high=5, n_items=1)
    ledger = Ledger.in_memory()
    with refuses("too-few-to-learn"):
        kind(epsilon=2.0).fit(single, ledger=ledger)
    assert ledger.entries() == []
