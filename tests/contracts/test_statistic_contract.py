"""What every statistic must hold to; a new one is found by itself and fails until it has an example."""

import dataclasses
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import subprocess
import sys
from fractions import Fraction
from itertools import chain
from typing import Annotated

import numpy as np
import pytest

from contracts.statistic_examples import examples
from discreet import evaluation, statistics
from discreet.statistics import statistic as statistic_module
from discreet.statistics.domain import Number
from discreet.statistics.item_vectors import ItemVectors
from discreet.statistics.statistic import Part, Statistic
from discreet.testing import StatisticContract, refuses
from discreet.testing.statistic_contract import EXTREMES, N_ITEMS, extreme_user, largest, search, searchable
from toy import toy_interactions


def discovered():
    """Return every concrete statistic of the package by name."""
    found = {}
    rooms = [pkgutil.walk_packages(one.__path__, one.__name__ + ".") for one in (statistics, evaluation)]
    for module in chain(*rooms):
        for name, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            own = kind.__module__ == module.name and issubclass(kind, Statistic)
            if own and not inspect.isabstract(kind):
                found[name] = kind
    return found


KINDS, EXAMPLES = discovered(), examples()
#: Its bound is that of one rating, so a whole user says nothing about it.
OF_RATINGS = {"RatingShares"}


def suite(name):
    """Return a class of checks for one example; several examples of a class search its domain once."""
    kind, _, variant = name.partition(" ")
    words = f"Test{kind}{variant.capitalize()}"
    checks = {
        "statistic": KINDS[kind],
        "example": lambda self, data: EXAMPLES[name](data),
        "reaches_half_its_bound": kind not in OF_RATINGS,
        "whole_domain": not variant,
    }
    return words, type(words, (StatisticContract,), checks)


globals().update(map(suite, EXAMPLES))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if searchable(kind)])
def test_a_long_search_finds_nobody_who_contributes_more(name):
    found = search(KINDS[name], 300, seed=1)
    assert found.faults == [] and found.largest > Fraction(1, 25)


def made(name, data):
    return KINDS[name.split()[0]](**EXAMPLES[name](data))


def test_every_statistic_has_an_example():
    assert {name.split()[0] for name in EXAMPLES} == set(KINDS)
    assert set(KINDS) <= set(EXAMPLES)


@dataclasses.dataclass(frozen=True, eq=False)
class Careless(Statistic):
    """Count ratings without a bound a person: what the suite must reject."""

    @property
    def parts(self):
        return (Part("ratings", (1,)),)

    def _add(self, block, sums):
        sums[0][0] += block.items.size << 24


def test_a_careless_statistic_is_rejected():
    assert any(largest(Careless(), extreme_user(kind, seed)) > 1 for kind in EXTREMES for seed in range(6))


@dataclasses.dataclass(frozen=True, eq=False)
class OrderMatters(Statistic):
    """Count only the first person of a block: additive for nobody."""

    @property
    def parts(self):
        return (Part("first", (1,)),)

    def _add(self, block, sums):
        sums[0][0] += 1


def test_a_statistic_of_blocks_instead_of_people_is_rejected():
    data = toy_interactions(n_users=20, n_items=N_ITEMS)
    halves = [data.select_users(part).total(OrderMatters()) for part in np.array_split(np.arange(20), 2)]
    assert (halves[0] + halves[1]).arrays[0] != data.total(OrderMatters()).arrays[0]


def test_too_many_people_and_foreign_sums_are_refused(monkeypatch):
    data = toy_interactions(n_users=20, n_items=N_ITEMS)
    votes, count = data.total(made("ItemVotes", data)), data.total(made("UserCount", data))
    with refuses("other-statistic"):
        votes + count
    monkeypatch.setattr(statistic_module, "MOST_PEOPLE", 30)
    with refuses("too-many-users", most=30):
        count + count
    monkeypatch.setattr(statistic_module, "MOST_PEOPLE", 19)
    with refuses("too-many-users", most=19):
        data.total(made("UserCount", data))


SEARCHED = sorted(name for name, kind in KINDS.items() if searchable(kind))


def test_only_statistics_of_objects_are_not_searched():
    assert set(KINDS) - set(SEARCHED) == {"OfKnownPart", "PersonalScores", "HeldOutScores"}


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class TooShort(Statistic):
    """Divide by what may be short: bounded at ordinary numbers, not on the whole domain."""

    longest: Annotated[float, Number(1e-6, 10.0)]

    @property
    def parts(self):
        return (Part("one", (1,)),)

    def _add(self, block, sums):
        length = max(self.longest, 1.0) / self.longest
        sums[0][0] += int(np.count_nonzero(block.counts) * length * 0.9 * 2**24)


def test_a_statistic_that_is_bounded_only_at_ordinary_numbers_is_rejected():
    assert search(TooShort).faults


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class AnyLength(ItemVectors):
    """Take factors of any length, as a party did once."""

    longest: Annotated[float, Number(1e-6, 1e30)]


def test_factors_shorter_than_their_constant_are_found():
    assert search(AnyLength).largest > 1000


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class WithoutDomain(Statistic):
    """State nothing about its field."""

    size: float

    @property
    def parts(self):
        return (Part("one", (1,)),)

    def _add(self, block, sums):
        return


def test_a_field_without_a_domain_is_no_statistic():
    with pytest.raises(TypeError, match=r"WithoutDomain\.size states no domain"):
        WithoutDomain(size=1.0)


@pytest.mark.slow
def test_no_kernel_reads_or_writes_outside_of_its_arrays(request):
    """Compiled with bounds checked, all statistics are searched over their whole domain."""
    kernels = request.config.cache.mkdir("bounds-checked")
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "discreet.testing.statistic_contract",
            *(f"{KINDS[name].__module__}:{name}" for name in SEARCHED),
        ],
        env={
            **os.environ,
            "NUMBA_BOUNDSCHECK": "1",
            "NUMBA_CACHE_DIR": str(kernels),
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    searched = json.loads(run.stdout)
    assert set(searched) == set(SEARCHED)
    assert all(faults == 0 for *_, faults in searched.values())
