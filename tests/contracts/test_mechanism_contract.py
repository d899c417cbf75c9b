"""What every mechanism must hold to; a new one is found by itself and fails until it has an example here."""

import dataclasses
import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest

from discreet.privacy import mechanisms
from discreet.privacy.mechanisms.additive import Laplace
from discreet.testing import MechanismContract


def discovered() -> dict[str, type]:
    """Return every concrete class of the package that has an event and a release."""
    found = {}
    for module_info in pkgutil.iter_modules(mechanisms.__path__, mechanisms.__name__ + "."):
        for name, kind in inspect.getmembers(importlib.import_module(module_info.name), inspect.isclass):
            own = kind.__module__ == module_info.name and not name.startswith("_")
            if own and hasattr(kind, "event") and hasattr(kind, "release") and not inspect.isabstract(kind):
                found[name] = kind
    return found


STARS = {"epsilon": 1.0, "low": 1.0, "high": 5.0}
EXAMPLES = {
    "Laplace": {
        "parameters": {"scale": 2.0, "l1_sensitivity": 1.0},
        "values": [1.5, -2.0, 0.0, 64.0],
        "never_free": {"scale": 0.0},
    },
    "Gaussian": {
        "parameters": {"sigma": 2.0, "l2_sensitivity": 1.0},
        "values": [1.5, -2.0, 0.0, 64.0],
        "never_free": {"sigma": 0.0},
    },
    "BoundedLaplace": {"parameters": STARS, "values": [1.0, 2.5, 4.0, 5.0]},
    "ClampedLaplace": {"parameters": STARS, "values": [1.0, 2.5, 4.0, 5.0]},
    "ModifiedLaplace": {
        "parameters": {**STARS, "points": 33},
        "values": [1.0, 2.5, 4.0, 5.0],
        "takes_mask": True,
    },
    "HiddenStars": {"parameters": STARS, "values": [1.0, 2.0, 4.0, 5.0]},
    "HiddenNumbers": {"parameters": {**STARS, "points": 33}, "values": [1.0, 2.5, 4.0, 5.0]},
    "SignFlip": {"parameters": {"epsilon": 1.0}, "values": [1, -1, -1, 1]},
    "RandomizedResponse": {"parameters": {"epsilon": 1.0, "levels": 5}, "values": [0, 5, 3, 1]},
    "ImportanceSampling": {
        "parameters": {"epsilon": 1.0, "scale": 4.0},
        "values": [[0.5, -1.0], [0.0, 0.25], [2.0, 1.0], [0.0, 0.0]],
        # It releases the sum of the rows, which is noise alone where there are none.
        "empty_is_empty": False,
    },
}
NAMES = sorted(discovered())
LOCAL = sorted(name for name, kind in discovered().items() if hasattr(kind, "largest_log_ratio"))


def suite(name):
    return f"Test{name}", type(
        f"Test{name}", (MechanismContract,), {"mechanism": discovered()[name], **EXAMPLES[name]}
    )


globals().update(suite(name) for name in NAMES if name in EXAMPLES)


def test_every_mechanism_has_an_example():
    assert set(NAMES) == set(EXAMPLES)
    # Cells are enumerated, empty ones included, in tests/collect/test_catalog_collection.py.
    cells = {"HiddenStars", "HiddenNumbers"}
    assert set(LOCAL) == set(NAMES) - {"Laplace", "Gaussian", "ImportanceSampling"} - cells


@dataclasses.dataclass(kw_only=True)
class Careless:
    """Add noise of its own, and change what it is given."""

    scale: float
    l1_sensitivity: float

    def event(self):
        return Laplace(scale=self.scale or 1.0, l1_sensitivity=self.l1_sensitivity).event()

    def release(self, values, seed=None):
        noisy = np.asarray(values)
        noisy += np.random.default_rng().normal(size=noisy.shape)
        return noisy


class CarelessSuite(MechanismContract):
    mechanism = Careless
    parameters = EXAMPLES["Laplace"]["parameters"]
    values = EXAMPLES["Laplace"]["values"]
    never_free = EXAMPLES["Laplace"]["never_free"]


@pytest.mark.parametrize(
    ("check", "arguments"),
    [
        ("test_is_a_final_frozen_keyword_only_dataclass", ()),
        ("test_says_its_guarantee_and_names_a_proof_that_exists", ()),
        ("test_takes_randomness_and_never_a_seed", ()),
        ("test_without_noise_it_is_refused_by_the_accountant", ()),
        ("test_bad_parameters_are_refused", (math.nan,)),
        ("test_values_that_are_no_numbers_are_refused_without_saying_where", (math.nan,)),
        ("test_the_same_simulation_gives_the_same_release_and_another_does_not", ()),
        ("test_the_input_is_left_alone_and_its_layout_does_not_matter", ()),
    ],
)
def test_a_careless_mechanism_is_rejected(check, arguments):
    """The twin: each of these checks fails for a mechanism that breaks its rule."""
    with pytest.raises((AssertionError, pytest.fail.Exception, TypeError, ValueError)):
        getattr(CarelessSuite(), check)(*arguments)
