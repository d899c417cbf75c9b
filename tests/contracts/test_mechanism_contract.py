"""What every mechanism must hold to; a new one is found by itself and fails until it has an example here."""

import dataclasses
import importlib
import inspect
import math
import pkgutil
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dp_accounting import SelfComposedDpEvent

from discreet.core.checks import DataError, ParameterError, PrivacyError
from discreet.core.randomness import PrivacyRandom
from discreet.privacy import mechanisms
from discreet.privacy.accounting.accountant import delta_at, epsilon_at

ROOT = Path(__file__).parents[2]


def discovered() -> dict[str, type]:
    """Return every concrete class of the package that has an event and a release."""
    found = {}
    for module_info in pkgutil.iter_modules(mechanisms.__path__, mechanisms.__name__ + "."):
        for name, kind in inspect.getmembers(importlib.import_module(module_info.name), inspect.isclass):
            own = kind.__module__ == module_info.name and not name.startswith("_")
            if own and hasattr(kind, "event") and hasattr(kind, "release") and not inspect.isabstract(kind):
                found[name] = kind
    return found


@dataclass(frozen=True, kw_only=True)
class Example:
    """Parameters that make a mechanism, and input values that a float32 holds exactly."""

    parameters: dict[str, Any]
    values: list[Any]
    never_free: dict[str, Any] = field(default_factory=dict)
    takes_mask: bool = False


STARS = {"epsilon": 1.0, "low": 1.0, "high": 5.0}
EXAMPLES = {
    "Laplace": Example(
        parameters={"scale": 2.0, "l1_sensitivity": 1.0},
        values=[1.5, -2.0, 0.0, 64.0],
        never_free={"scale": 0.0},
    ),
    "Gaussian": Example(
        parameters={"sigma": 2.0, "l2_sensitivity": 1.0},
        values=[1.5, -2.0, 0.0, 64.0],
        never_free={"sigma": 0.0},
    ),
    "BoundedLaplace": Example(parameters=STARS, values=[1.0, 2.5, 4.0, 5.0]),
    "ClampedLaplace": Example(parameters=STARS, values=[1.0, 2.5, 4.0, 5.0]),
    "ModifiedLaplace": Example(
        parameters={**STARS, "points": 33}, values=[1.0, 2.5, 4.0, 5.0], takes_mask=True
    ),
    "HiddenStars": Example(parameters=STARS, values=[1.0, 2.0, 4.0, 5.0]),
    "HiddenNumbers": Example(parameters={**STARS, "points": 33}, values=[1.0, 2.5, 4.0, 5.0]),
    "SignFlip": Example(parameters={"epsilon": 1.0}, values=[1, -1, -1, 1]),
    "RandomizedResponse": Example(parameters={"epsilon": 1.0, "levels": 5}, values=[0, 5, 3, 1]),
    "ImportanceSampling": Example(
        parameters={"epsilon": 1.0, "scale": 4.0}, values=[[0.5, -1.0], [0.0, 0.25], [2.0, 1.0], [0.0, 0.0]]
    ),
}
NAMES = sorted(discovered())
LOCAL = sorted(name for name, kind in discovered().items() if hasattr(kind, "largest_log_ratio"))


def make(name: str, **changes):
    return discovered()[name](**{**EXAMPLES[name].parameters, **changes})


def drawing(mechanism):
    """Return what draws: mechanisms of cells refuse to release rated ones alone, and report them instead."""
    return getattr(mechanism, "report", None) or mechanism.release


def release(name: str, values, random, mechanism=None) -> np.ndarray:
    """Release and return everything that comes out as one array."""
    options = {}
    if EXAMPLES[name].takes_mask:
        options["present"] = np.arange(np.size(values)).reshape(np.shape(values)) % 2 == 0
    mechanism = mechanism or make(name)
    result = drawing(mechanism)(values, random, **options)
    return (
        np.concatenate([np.ravel(part) for part in result])
        if isinstance(result, tuple)
        else np.asarray(result)
    )


def many(name: str) -> np.ndarray:
    """Return enough input values for two releases never to agree by chance."""
    values = np.array(EXAMPLES[name].values, dtype=np.float64)
    return np.tile(values, (64,) + (1,) * (values.ndim - 1))


def test_every_mechanism_has_an_example():
    assert set(NAMES) == set(EXAMPLES)
    # Cells are enumerated, empty ones included, in tests/collect/test_catalog_collection.py.
    cells = {"HiddenStars", "HiddenNumbers"}
    assert set(LOCAL) == set(NAMES) - {"Laplace", "Gaussian", "ImportanceSampling"} - cells


@pytest.mark.parametrize("name", NAMES)
def test_is_a_final_frozen_keyword_only_dataclass(name):
    kind = discovered()[name]
    assert getattr(kind, "__final__", False)
    assert dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen
    assert all(entry.kw_only for entry in dataclasses.fields(kind))
    assert not hasattr(make(name), "__dict__")
    assert make(name) == make(name) and hash(make(name)) == hash(make(name))
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(make(name), dataclasses.fields(kind)[0].name, 2.0)


@pytest.mark.parametrize("name", NAMES)
def test_says_its_guarantee_and_names_a_proof_that_exists(name):
    text = inspect.getdoc(discovered()[name]) or ""
    section = re.search(r"^Guarantee\n((?:    .*\n|\n)+)", text, flags=re.MULTILINE)
    assert section, "the docstring needs a Guarantee section"
    notes = re.findall(r"proofs/\w+\.md", section.group(1))
    assert notes and all((ROOT / note).is_file() for note in notes)
    assert any(name in (ROOT / note).read_text(encoding="utf-8") for note in notes)


@pytest.mark.parametrize("name", NAMES)
def test_takes_randomness_and_never_a_seed(name):
    names = set(inspect.signature(drawing(discovered()[name])).parameters)
    assert "random" in names and not names & {"seed", "rng", "random_state"}


@pytest.mark.parametrize("name", NAMES)
def test_its_event_has_a_price_and_repeating_costs_as_much_again(name):
    event = make(name).event()
    once = epsilon_at(event, 1e-6)
    assert 0 < once < math.inf
    assert once < epsilon_at(SelfComposedDpEvent(event, 3), 1e-6) < math.inf
    pure = epsilon_at(event, 0.0)
    if math.isfinite(pure):
        assert epsilon_at(SelfComposedDpEvent(event, 3), 0.0) == pytest.approx(3 * pure, rel=1e-12)
        assert delta_at(event, pure) == 0.0
    if "epsilon" in EXAMPLES[name].parameters:
        assert pure == make(name).epsilon


@pytest.mark.parametrize("name", [name for name in NAMES if name in EXAMPLES and EXAMPLES[name].never_free])
def test_without_noise_it_is_refused_by_the_accountant(name):
    with pytest.raises(PrivacyError):
        epsilon_at(make(name, **EXAMPLES[name].never_free).event(), 1e-6)


@pytest.mark.parametrize("bad", [math.nan, "1", True, [1.0], -math.inf])
@pytest.mark.parametrize("name", NAMES)
def test_bad_parameters_are_refused(name, bad):
    for parameter in (entry.name for entry in dataclasses.fields(discovered()[name])):
        with pytest.raises(ParameterError):
            make(name, **{parameter: bad})


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf])
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name in EXAMPLES and "epsilon" in EXAMPLES[name].parameters]
)
def test_epsilon_is_positive_and_finite(name, bad):
    with pytest.raises(ParameterError, match="epsilon"):
        make(name, epsilon=bad)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", NAMES)
def test_values_that_are_no_numbers_are_refused_without_saying_where(name, bad):
    values = many(name)
    values.reshape(-1)[5] = bad
    with pytest.raises(DataError) as error:
        release(name, values, PrivacyRandom.simulate(1))
    assert "5" not in re.sub(r"\[.*?\]", "", str(error.value))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_simulation_gives_the_same_release_and_another_does_not(name):
    values = many(name)
    first = release(name, values, PrivacyRandom.simulate(1))
    np.testing.assert_array_equal(first, release(name, values, PrivacyRandom.simulate(1)))
    assert not np.array_equal(first, release(name, values, PrivacyRandom.simulate(2)))
    real = [release(name, values, PrivacyRandom.from_os()) for _ in range(2)]
    assert not np.array_equal(*real)


@pytest.mark.parametrize("name", NAMES)
def test_the_input_is_left_alone_and_its_layout_does_not_matter(name):
    values = many(name)
    expected = release(name, values, PrivacyRandom.simulate(3))
    sealed = values.copy()
    sealed.setflags(write=False)
    gaps = np.zeros((2 * len(values), *values.shape[1:]))
    gaps[::2] = values
    layouts = [
        sealed,
        values.astype(np.float32),
        gaps[::2],
        values[::-1].copy()[::-1],
        np.asfortranarray(values),
    ]
    for layout in [*layouts, values.tolist()]:
        before = np.array(layout, copy=True)
        np.testing.assert_array_equal(release(name, layout, PrivacyRandom.simulate(3)), expected)
        np.testing.assert_array_equal(np.asarray(layout), before)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_input_is_no_error(name):
    nothing = many(name)[:0]
    result = release(name, nothing, PrivacyRandom.simulate(4))
    assert np.all(np.isfinite(result))
    if name != "ImportanceSampling":
        assert result.size == 0


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("name", LOCAL)
def test_no_report_tells_two_inputs_apart_by_more_than_epsilon(name, epsilon):
    mechanism = make(name, epsilon=epsilon)
    loss = mechanism.largest_log_ratio()
    assert loss <= epsilon
    assert loss == pytest.approx(epsilon, abs=1e-7)
    # The channel that models compute with is the one that is drawn from.
    transition = make(name, epsilon=epsilon).channel().transition
    np.testing.assert_allclose(transition.sum(axis=1), 1.0, atol=1e-12)
    ratios = np.log(transition.max(axis=0)) - np.log(transition.min(axis=0))
    assert ratios.max() <= epsilon + 1e-12


@pytest.mark.parametrize("name", LOCAL)
def test_a_local_mechanism_knows_what_its_reports_say(name):
    mechanism, values = make(name), EXAMPLES[name].values
    means, spread = mechanism.mean(values), mechanism.variance(values)
    assert np.all(np.isfinite(means)) and np.all(spread > 0)
    np.testing.assert_allclose(mechanism.inverse_mean(means), values, atol=1e-9)
    likelihood = mechanism.likelihood(np.asarray(values)[:, None], np.asarray(values)[None, :])
    assert likelihood.shape == (4, 4) and np.all((likelihood > 0) & (likelihood < 1))
