"""Refactoring changes no number of any model: every array of every fit is what it was.

On the machine where an array was recorded every bit is compared; on others, numbers up to rounding.
"""

import numpy as np
import pytest

from contracts.families import REPEATED, by_default
from golden.cases import arrays_of, recipes
from golden.make import updated
from golden.records import ROUNDING, changed, machine, read, record, tolerance, write

GOLDEN = read()
HERE = machine()


# With noise every model is compared by default; without noise, one model of each family.
@pytest.mark.few(12, "user-factorization", "user-factorization choices inf", "user-factorization features")
@pytest.mark.parametrize("fit", by_default(recipes(), {f"{name} inf" for name in REPEATED}))
def test_every_array_is_what_it_was(fit):
    arrays = arrays_of(fit)
    lost = {key for key in GOLDEN if key.split("/")[1] == fit} - arrays.keys()
    wrong = [wrong for key, array in arrays.items() if (wrong := changed(GOLDEN, key, array, HERE))]
    assert not lost and not wrong, "If this was on purpose see tests/golden/make.py."


@pytest.mark.parametrize(
    ("fit", "name"),
    [
        ("user-factorization", "co_occurrences"),
        ("user-factorization choices", "item_factors"),
        ("user-factorization choices", "neighbor_weights"),
        ("user-factorization features", "item_factors"),
    ],
)
def test_item_embeddings_and_weights_between_items_are_among_them(fit, name):
    assert GOLDEN[f"in groups/{fit}/{name}"]["shape"][1] > 0


# Fits whose arrays come from eigenvectors or singular vectors.
DECOMPOSED = [
    "als inf",
    "covariance-svd",
    "frank-wolfe covariance",
    "frank-wolfe inf",
    "frank-wolfe-printed",
    "implicit-objective inf",
    "local-nuclear inf",
    "local-nuclear-plain",
    "one-bit-gradient",
    "projected-gradient inf",
    "user-factorization",
    "user-factorization choices",
    "user-factorization inf",
]


@pytest.mark.few(2, "user-factorization")
@pytest.mark.parametrize("fit", by_default(DECOMPOSED))
def test_signs_that_the_library_chose_do_not_matter(fit, monkeypatch):
    """Another processor may find the opposite of any vector; here every one is turned by a coin."""
    coins, turned = np.random.default_rng(8), []
    eigh, svd = np.linalg.eigh, np.linalg.svd

    def other_eigh(*arguments, **settings):
        values, vectors = eigh(*arguments, **settings)
        turned.append(coins.choice([-1.0, 1.0], values.shape[-1]))
        return values, vectors * turned[-1]

    def other_svd(*arguments, **settings):
        if not settings.get("compute_uv", True):
            return svd(*arguments, **settings)
        left, values, right = svd(*arguments, **settings)
        turned.append(coins.choice([-1.0, 1.0], values.size))
        few = values.size
        left[:, :few] *= turned[-1]
        right[:few] *= turned[-1][:, None]
        return left, values, right

    monkeypatch.setattr(np.linalg, "eigh", other_eigh)
    monkeypatch.setattr(np.linalg, "svd", other_svd)
    for key, array in arrays_of(fit).items():
        assert not changed(GOLDEN, key, array, "another machine")
    assert any((one < 0).any() for one in turned)


def test_every_golden_array_belongs_to_a_fit():
    assert {key.split("/")[1] for key in GOLDEN} == set(recipes())


@pytest.mark.parametrize("shape", [(20,), (200,), (20, 3), (1200, 4)])
def test_a_changed_number_shows_on_any_machine(shape):
    """The twin: what is larger than rounding is found in arrays kept in full and in those kept by sums."""
    array = np.random.default_rng(5).standard_normal(shape)
    golden = {"an array": record(array, "another machine")}
    scale = np.abs(array).max()
    assert not changed(golden, "an array", array * (1 + 1e-13), "here")
    assert "differs" in changed(golden, "an array", array * (1 + 1e-6), "here")
    one = array.copy()
    one.flat[one.size // 2] += 1e-6 * scale
    assert "differs" in changed(golden, "an array", one, "here")
    assert "differs" in changed(golden, "an array", array[::-1], "here")
    one.flat[0] = np.nan
    assert "differs" in changed(golden, "an array", one, "here")


def test_a_last_bit_shows_on_the_same_machine():
    array = np.random.default_rng(5).standard_normal(20)
    golden = {"an array": record(array, "here")}
    assert not changed(golden, "an array", array, "here")
    array.view("int64")[0] ^= 1
    assert "other bits" in changed(golden, "an array", array, "here")


def test_integers_are_compared_exactly_on_any_machine():
    array = np.arange(300)
    golden = {"an array": record(array, "another machine")}
    assert not changed(golden, "an array", array, "here")
    array[7] += 1
    assert "differs" in changed(golden, "an array", array, "here")
    assert "differs" in changed(golden, "an array", np.arange(300, dtype=np.int32), "here")
    assert "differs" in changed(golden, "an array", np.arange(300).reshape(3, 100), "here")


def test_only_missing_arrays_are_added_unless_asked():
    """A changed array keeps its record until it is named, and a renamed one is recognized."""
    old = {f"a/fit/{name}": np.arange(3.0) + len(name) for name in ("same", "old", "gone")}
    golden = {key: record(array, "there") for key, array in old.items()}
    golden["a/fit/changed"] = record(np.ones(2), "there")
    arrays = {
        "a/fit/same": old["a/fit/same"],
        "a/fit/new name": old["a/fit/old"],
        "a/fit/changed": np.full(2, 1 + 1e-6),
        "a/fit/added": np.zeros(3),
    }
    kept, lines = updated(golden, arrays, "here")
    assert kept["a/fit/same"] is golden["a/fit/same"] and kept["a/fit/new name"] is golden["a/fit/old"]
    assert kept["a/fit/changed"] is golden["a/fit/changed"] and "a/fit/gone" in kept
    assert kept["a/fit/added"] == record(np.zeros(3), "here")
    assert [line.split()[0] for line in lines] == ["renamed", "kept", "added", "kept"]
    kept, lines = updated(golden, arrays, "here", anew=["a/fit/[cgn]*"])
    assert kept["a/fit/changed"]["machine"] == "here" and "a/fit/gone" not in kept
    assert [line.split()[0] for line in lines] == ["renamed", "changed", "added", "dropped"]


def test_records_survive_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("golden.records.FILE", tmp_path / "arrays.json")
    records = {"a/b/c": record(np.linspace(0, 1, 100), "one"), "a/b/d": record(np.arange(3), "two")}
    write(records)
    assert read() == records


def test_most_arrays_need_no_more_than_the_usual_rounding():
    usual = [key for key, one in GOLDEN.items() if tolerance(key, one["dtype"]) == ROUNDING.get(one["dtype"])]
    assert len(usual) >= 0.95 * sum("numbers" in one for one in GOLDEN.values())
