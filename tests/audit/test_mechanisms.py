"""Audit every mechanism found: by enumeration where finite, by recorded calls where it adds noise."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

from audit.finite_tables import exact_loss
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import Player, Recorder
from discreet.core.checks import DataError
from discreet.core.randomness import PrivacyRandom
from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import Additive, Gaussian, Laplace
from discreet.privacy.mechanisms.subsampling import ImportanceSampling

STARS = {"low": 1.0, "high": 5.0}
#: What makes each finite mechanism at some epsilon, and all its inputs.
FINITE = {
    "SignFlip": ({}, [-1, 1]),
    "RandomizedResponse": ({"levels": 5}, range(6)),
    "BoundedLaplace": ({**STARS, "points": 41}, np.linspace(1, 5, 41)),
    "ClampedLaplace": ({**STARS, "points": 41}, np.linspace(1, 5, 41)),
    "ModifiedLaplace": ({**STARS, "points": 33}, ()),
    "HiddenStars": (STARS, ()),
    "HiddenNumbers": ({**STARS, "points": 33}, ()),
}


def discovered():
    found = {}
    for module_info in pkgutil.iter_modules(mechanisms.__path__, mechanisms.__name__ + "."):
        for name, kind in inspect.getmembers(importlib.import_module(module_info.name), inspect.isclass):
            own = kind.__module__ == module_info.name and not name.startswith("_")
            if own and hasattr(kind, "event") and hasattr(kind, "release") and not inspect.isabstract(kind):
                found[name] = kind
    return found


def test_every_mechanism_is_audited_here():
    additive = {name for name, kind in discovered().items() if issubclass(kind, Additive)}
    assert set(discovered()) == set(FINITE) | additive | {"ImportanceSampling"}
    assert additive == {"Laplace", "Gaussian"}


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("name", sorted(FINITE))
def test_a_finite_mechanism_pays_what_it_promises_and_no_more(name, epsilon):
    settings, inputs = FINITE[name]
    loss = exact_loss(discovered()[name](epsilon=epsilon, **settings), list(inputs))
    assert loss <= epsilon * (1 + 1e-9)
    assert loss > 0.999 * epsilon


def test_a_table_with_more_than_its_epsilon_is_seen():
    bold = discovered()["SignFlip"](epsilon=1.1)
    assert exact_loss(bold, [-1, 1]) > 1.09


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(
    ("mechanism", "promised"),
    [
        (Laplace.calibrated(epsilon=1.0, l1_sensitivity=2.0), (1.0, 0.0)),
        (Gaussian.calibrated(epsilon=1.0, delta=1e-6, l2_sensitivity=2.0), (1.0, 1e-6)),
    ],
)
def test_additive_noise_costs_what_it_promises(mechanism, promised, symmetric):
    base = np.zeros((3, 3)) + 1 / 3
    moved = base.copy()
    moved[1, 1] += 2.0
    recorder = Recorder()
    draw = mechanism.release_symmetric if symmetric else mechanism.release
    draw(base, PrivacyRandom.recorded(1, recorder))
    player = Player(recorder.calls)
    draw(moved, PrivacyRandom.recorded(1, player))
    paid = price(recorder.calls, player.calls).epsilon(promised[1])
    assert 0.99 < paid <= promised[0]


def test_importance_sampling_is_priced_by_its_own_loss_and_not_enumerated():
    sampling = ImportanceSampling(epsilon=1.0, scale=2.0)
    sizes = np.linspace(0.01, sampling.largest_norm(), 50)
    assert sampling.loss(sizes, sampling.weights(sizes)).max() <= 1.0
    with pytest.raises(DataError, match="one table"):
        exact_loss(sampling, [[1.0], [0.5]])
