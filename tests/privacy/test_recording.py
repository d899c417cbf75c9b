"""The hook for audits: it sees every draw of a simulated source, changes none, and no other source has it."""

import numpy as np
import pytest

from discreet.collect.device import CatalogDevice, collect_cells
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
from discreet.privacy.mechanisms.bounded import BoundedLaplace, ModifiedLaplace
from discreet.privacy.mechanisms.cells import HiddenStars
from discreet.privacy.mechanisms.randomized_response import SignFlip
from discreet.privacy.sampling import draws
from toy import toy_interactions


class Notes:
    """A tape that lets everything through and remembers what it was."""

    def __init__(self):
        self.seen, self.values = [], []

    def passing(self, draw, arguments):
        self.seen.append(draw.__name__)
        return draw(**arguments)

    def exact(self, mechanism, values):
        self.values.append((mechanism, values.copy()))


def gaussian(random):
    return Gaussian(sigma=2.0, l2_sensitivity=1.0).release(np.arange(7.0), random)


def symmetric(random):
    return Laplace(scale=2.0, l1_sensitivity=1.0).release_symmetric(np.eye(3), random)


CASES = {
    "gaussian": (gaussian, ["add_discrete_gaussian"]),
    "symmetric": (symmetric, ["add_discrete_laplace"] * 2),
    "flip": (lambda random: SignFlip(epsilon=1.0).release([1, -1], random), ["draw_from_table"]),
    "bounded": (
        lambda random: BoundedLaplace(epsilon=1.0, low=1, high=5).release([2.0], random),
        ["draw_from_table"],
    ),
    "modified": (
        lambda random: ModifiedLaplace(epsilon=2.0).release([0.5, 0.0], random, present=[True, False])[1],
        ["release"],
    ),
    "cells": (
        lambda random: collect_cells(toy_interactions(30, 16), HiddenStars(epsilon=2.0), random).codes,
        ["answer_cells"],
    ),
    "geometric": (lambda random: draws.geometric(3.0, 4, random), ["geometric"]),
    "bernoulli": (lambda random: draws.bernoulli(0.5, 4, random), ["bernoulli"]),
    "uniform": (lambda random: draws.uniform_below(10, 4, random), ["uniform_below"]),
    "keyword": (lambda random: draws.uniform_below(10, 4, random=random), ["uniform_below"]),
    "bytes": (lambda random: random.bytes(9), ["bytes"]),
    "child": (lambda random: gaussian(random.spawn("child")), ["add_discrete_gaussian"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_tape_sees_each_draw_once_and_changes_nothing(name):
    draw, seen = CASES[name]
    notes = Notes()
    np.testing.assert_array_equal(
        draw(PrivacyRandom.recorded(5, notes)), draw(PrivacyRandom.simulate(5)), strict=True
    )
    assert notes.seen == seen


def test_a_tape_is_shown_the_numbers_before_the_noise():
    notes = Notes()
    gaussian(PrivacyRandom.recorded(1, notes))
    ((mechanism, values),) = notes.values
    assert mechanism == Gaussian(sigma=2.0, l2_sensitivity=1.0)
    np.testing.assert_array_equal(values, np.arange(7.0))


def test_a_source_that_protects_people_has_no_tape_and_gets_none():
    real = PrivacyRandom.from_os()
    assert (
        real.recording is None
        and real.spawn("child").recording is None
        and real.unrecorded().recording is None
    )
    with pytest.raises(AttributeError):
        real.recording = Notes()
    assert PrivacyRandom._make(bytes(32), simulated=False, recording=Notes()).recording is None
    assert PrivacyRandom.recorded(1, Notes()).simulated
    assert PrivacyRandom.recorded(1, Notes()).unrecorded().simulated
    assert CatalogDevice.__init__.__kwdefaults__["random"] is None
