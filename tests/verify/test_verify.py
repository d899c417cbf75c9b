"""The independent checker: it accepts what the package releases and rejects every weaker number."""

import ast
import contextlib
import copy
import json
import math
import random
import sys
import time
from fractions import Fraction
from pathlib import Path

import discreet_verify
import pytest
from discreet_verify import Rejected, check_certificate, main

from verify.certificates import CERTIFICATES, gaussian, sealed

SOURCE = Path(discreet_verify.__file__)


@pytest.mark.parametrize("name", CERTIFICATES)
def test_what_the_package_releases_is_certified_in_less_than_two_seconds(name, tmp_path, capsys):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(CERTIFICATES[name]()))
    begun = time.process_time()
    assert main([str(path)]) == 0
    assert time.process_time() - begun < 2
    assert capsys.readouterr().out.startswith("certified")


# For each mechanism: fields whose growth weakens the guarantee, and fields whose decline does.
GROWING = {
    "discrete-gaussian": ("sensitivity", "coordinates", "count"),
    "discrete-laplace": ("sensitivity", "coordinates", "count"),
    "randomized-response": ("words", "count"),
    "channel": ("count", "columns"),
    "threshold-selection": ("one", "count", "coordinates", "failing"),
    "importance-sampling": ("sensitivity", "epsilon", "count"),
    "continual-gaussian": ("entries", "count", "matrices"),
    "shared-gaussian": ("sensitivity", "count"),
}
DECLINING = {
    "discrete-gaussian": ("scale", "off_diagonal"),
    "discrete-laplace": ("scale", "off_diagonal"),
    "randomized-response": ("other",),
    "channel": ("columns",),
    "threshold-selection": ("scale", "threshold", "failing"),
    "importance-sampling": ("scale", "epsilon"),
    "continual-gaussian": ("scale",),
    "shared-gaussian": ("scale", "off_diagonal", "honest"),
}


def text(number):
    number = Fraction(number)
    return int(number) if number.denominator == 1 else str(number)


def changed(release, field, factor, grows):
    """Change one number of a release by a factor, in the direction that weakens the guarantee."""
    if field == "columns":
        worst = max(release["columns"], key=lambda pair: Fraction(*pair))
        if grows:
            worst[0] = int(worst[0] * factor) + 1
        else:
            worst[1] = max(1, int(worst[1] / factor))
            worst[0] = max(worst[0], int(worst[0] * factor) if worst[1] == 1 else worst[0])
        return
    if field == "matrices":
        column = max(
            (one for matrix in release["matrices"] for one in matrix), key=lambda c: sum(x * x for x in c)
        )
        place = max(range(len(column)), key=column.__getitem__)
        column[place] = int(column[place] * factor) + 1
        return
    value = Fraction(release[field])
    if field in ("count", "honest"):
        value = value + 1 if grows else value - 1
    elif field == "coordinates":  # Matters only once rounding does.
        value *= 2**80
    elif field == "failing":
        value *= 50 * factor if grows else 1 / factor
    else:
        value = value * factor if grows else value / factor
    whole = field in ("count", "coordinates", "words", "other", "honest", "threshold", "entries")
    release[field] = text(int(value) if whole else value)


def tight(record):
    """Return the certificate with the least epsilon that its releases prove, so that any weakening shows."""
    low, high = Fraction(0), Fraction(record["claim"]["epsilon"])
    for _ in range(14):
        middle = (low + high) / 2
        record["claim"]["epsilon"] = text(middle)
        low, high = (low, middle) if verdict(sealed(record)) is None else (middle, high)
    record["claim"]["epsilon"] = text(high)
    return sealed(record)


def weakenings(seed, times):
    """Yield certificates with one number changed for the worse, and a digest that fits."""
    chosen = random.Random(seed)
    for name, make in CERTIFICATES.items():
        sound = tight(make())
        places = [("claim", field) for field in ("epsilon", "delta", "people")]
        for number, release in enumerate(sound["releases"]):
            kind = release["mechanism"]
            places += [(number, field, True) for field in GROWING[kind] if field in release]
            places += [(number, field, False) for field in DECLINING[kind] if field in release]
        for place in places:
            for _ in range(times):
                record = copy.deepcopy(sound)
                factor = Fraction(chosen.choice([101, 110, 150, 300, 2000, 10**6]), 100)
                if place[0] == "claim":
                    if not Fraction(record["claim"][place[1]]) and place[1] == "delta":
                        continue
                    old = Fraction(record["claim"][place[1]])
                    record["claim"][place[1]] = text(old + 1 if place[1] == "people" else old / factor)
                else:
                    number, field, grows = place
                    changed(record["releases"][number], field, factor, grows)
                yield f"{name}: {place} by {float(factor)}", sealed(record)


def verdict(record):
    try:
        check_certificate(record)
    except Rejected as error:
        return str(error)
    return None


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.thorough)])
def test_every_weaker_number_is_rejected_by_mathematics(times):
    tried = list(weakenings(seed=1, times=times))
    accepted = [name for name, record in tried if verdict(record) is None]
    assert accepted == [] and len(tried) >= 100 * times
    assert all("digest" not in verdict(record) for _, record in tried[::17])


def leaf_places(value, path=()):
    if isinstance(value, dict):
        return [place for key in value for place in leaf_places(value[key], (*path, key))]
    if isinstance(value, list):
        return [place for at in range(len(value)) for place in leaf_places(value[at], (*path, at))]
    return [path]


def other(value, chosen):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chosen.choice([1, -1, 2**20])
    return chosen.choice([value + "0", value[1:], "1/3", value.upper() + "x"])


def test_every_other_change_breaks_the_digest():
    chosen, tried = random.Random(2), 0
    for make in CERTIFICATES.values():
        sound = make()
        places = leaf_places(sound)
        for place in chosen.sample(places, min(40, len(places))):
            record = copy.deepcopy(sound)
            inner = record
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = other(inner[place[-1]], chosen)
            tried += 1
            assert verdict(record) is not None, place
    assert tried >= 300


def test_more_noise_and_weaker_claims_stay_certified():
    """The twin: the checker doesn't reject whatever was changed."""
    sound = gaussian()
    for field, factor in (("scale", 2), ("sensitivity", Fraction(1, 2))):
        record = copy.deepcopy(sound)
        record["releases"][0][field] = text(Fraction(record["releases"][0][field]) * factor)
        assert verdict(sealed(record)) is None
    record = copy.deepcopy(sound)
    record["claim"]["epsilon"] = 2
    assert verdict(sealed(record)) is None


@pytest.mark.parametrize("kind", ["exponential", "gaussian", "", None, 3, ["discrete-gaussian"]], ids=str)
def test_a_mechanism_that_is_not_known_is_not_certified(kind, tmp_path, capsys):
    record = gaussian()
    record["releases"][0]["mechanism"] = kind
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(sealed(record)))
    assert main([str(path)]) == 1
    assert capsys.readouterr().out.startswith("rejected")
    if isinstance(kind, str):
        assert "not certified" in verdict(sealed(record))


@pytest.mark.parametrize(
    "change",
    [
        {"scale": 4.2},
        {"scale": "1e9"},
        {"scale": -5},
        {"scale": "-5/3"},
        {"scale": "5/0"},
        {"scale": True},
        {"rounded": 1},
        {"rounded": "no"},
        {"norm": "l1"},
        {"coordinates": 0},
        {"count": 0},
        {"count": "1/2"},
        {"surprise": 1},
    ],
    ids=str,
)
def test_numbers_are_exact_and_no_field_is_ignored(change):
    record = gaussian()
    record["releases"][0] |= change
    assert verdict(sealed(record)) is not None


def odd(value):
    """Return values of other types, signs, and spellings in the place of a value."""
    return [
        *([value], {"a": value}, [[[value]]], None, True, False, -1, -0.5, 1.0, math.nan, math.inf, [], {}),
        *(
            "",
            "\u0661",
            " 1",
            "1 ",
            "1\n",
            "1_0",
            "+1",
            "-1",
            "1.0",
            "1e9",
            "0x1",
            "1/0",
            "1/-2",
            "-1/2",
            "/2",
        ),
    ]


def test_no_odd_value_is_certified():
    chosen, tried, accepted = random.Random(3), 0, []
    for name, make in CERTIFICATES.items():
        record = make()
        places = leaf_places({key: record[key] for key in record if key != "digest"})
        for place in chosen.sample(places, min(15, len(places))):
            *before, last = place
            inner, sound = get(record, before), get(record, place)
            # A name is any text, a weight may be negative, and "true" may turn into "false".
            may_be = {"name": str, "rounded": bool}.get(last, int if "matrices" in place else ())
            for value in chosen.sample([one for one in odd(sound) if not isinstance(one, may_be)], 8):
                inner[last] = value
                tried += 1
                with contextlib.suppress(Rejected, TypeError, ValueError):
                    accepted.append((name, place, value, check_certificate(sealed(record))))
            inner[last] = sound
    assert accepted == [] and tried > 1_000


def get(record, place):
    for key in place:
        record = record[key]
    return record


def first(record):
    return record["releases"][0]


SHAPES = {
    "the least count first": ("sign flip", lambda one: first(one)["columns"][0].reverse()),
    "all least counts first": (
        "bounded Laplace",
        lambda one: [two.reverse() for two in first(one)["columns"]],
    ),
    "a pair written as text": ("sign flip", lambda one: first(one).update(columns=["12", "12"])),
    "no reports": ("sign flip", lambda one: first(one).update(columns=[])),
    "fewer sums than names": ("threshold", lambda one: first(one).update(coordinates=999)),
    "no weights": ("continual", lambda one: first(one).update(matrices=[[[0, 0], [0]]])),
    "no columns": ("continual", lambda one: first(one).update(matrices=[[]])),
    "the heaviest column left out": ("continual", lambda one: first(one)["matrices"][0].pop()),
    "a release left out of a column": ("continual", lambda one: first(one)["matrices"][0][0].pop(0)),
    "columns in another order": ("continual", lambda one: first(one)["matrices"][0].reverse()),
    "another unit": ("Gaussian", lambda one: one["claim"].update(unit="household")),
    "other neighbors": ("Gaussian", lambda one: one["claim"].update(neighbors="none")),
    "how releases compose": ("Gaussian", lambda one: one.update(composition="parallel")),
    "how a release composes": ("Gaussian", lambda one: first(one).update(composition="parallel")),
    "a sampling rate": ("Gaussian", lambda one: first(one).update(sampling_rate="3/2")),
    "a version that is true": ("Gaussian", lambda one: one.update(version=True)),
    "a version that is a float": ("Gaussian", lambda one: one.update(version=1.0)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_certificate_of_another_shape_is_rejected(name):
    kind, change = SHAPES[name]
    record = CERTIFICATES[kind]()
    assert verdict(record) is None
    change(record)
    assert verdict(sealed(record)) is not None


def test_a_file_with_a_key_twice_is_rejected(tmp_path, capsys):
    path, text_of_it = tmp_path / "certificate.json", json.dumps(gaussian())
    twice = text_of_it.replace('"epsilon": 1', '"epsilon": "1/100", "epsilon": 1')
    assert json.loads(twice) == json.loads(text_of_it) and twice != text_of_it
    for content, code in ((text_of_it, 0), (twice, 1)):
        path.write_text(content)
        assert main([str(path)]) == code


def test_rounding_of_many_coordinates_costs():
    record = gaussian(size=2**40)
    assert verdict(record) is None
    record["releases"][0]["sensitivity"] = text(
        Fraction(record["releases"][0]["sensitivity"]) + Fraction(2**20)
    )
    assert verdict(sealed(record)) is not None


def test_a_certificate_without_releases_proves_nothing():
    record = gaussian()
    record["releases"] = []
    assert verdict(sealed(record)) is not None


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"3", b"PK\x03\x04", b"SQLite format 3\x00", b"{", b"\xff\xfe", b'{"claim": 1}'],
    ids=str,
)
def test_a_file_of_another_kind_is_rejected(content, tmp_path, capsys):
    path = tmp_path / "file"
    path.write_bytes(content)
    assert main([str(path)]) == 1
    assert main([str(tmp_path / "missing")]) == 1
    out = capsys.readouterr().out
    assert out.count("rejected") == 2 and "Traceback" not in out


def test_arguments():
    assert main([]) == 2 and main(["a", "b"]) == 2 and main(["--help"]) == 0


def test_the_checker_is_short_and_independent():
    """At most 500 lines, the standard library, python-flint, and nothing of the package."""
    code = SOURCE.read_text(encoding="utf8")
    assert len(code.splitlines()) <= 500
    assert sum(len(path.read_text().splitlines()) for path in SOURCE.parent.glob("*.py")) <= 500
    imported = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            imported |= {name.name.partition(".")[0] for name in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module.partition(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"flint"}
