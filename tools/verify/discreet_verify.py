"""Check a privacy claim without the program that made it: `discreet-verify FILE`.

It shares no code with `discreet`. It computes in ball arithmetic, where every number is an interval that
contains the exact one. So a claim that it accepts is true for the mechanisms that the certificate states.
proofs/certificate.md describes the format and the theorem behind each mechanism.

The command prints `certified` and what it didn't check, or `rejected` with the reason; then it exits with 1.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from flint import arb, ctx, fmpq

FORMAT, VERSION = "discreet-certificate", 1
# A hostile file must not keep this program busy: bytes of a file, and ranges that a tail is bounded on.
_MOST_BYTES, _MOST_RANGES = 1 << 28, 4_096
_NUMBER = re.compile(r"[0-9]{1,4300}(/[1-9][0-9]{0,4299})?")
ctx.prec = 640  # Enough digits for every delta above 2^-400.
_ADDING_SLACK = 1 + Fraction(1, 10**12)  # Ten floats of 0.1 fit a budget of 1, although they are more.

Record = Mapping[str, Any]


class Rejected(Exception):
    """The claim is wrong, or this program can't prove it."""


def require(fits: bool, reason: str) -> None:
    """Reject a claim unless a condition is true."""
    if not fits:
        raise Rejected(reason)


def unknown(what: str, name: object) -> Rejected:
    """Return a rejection where this program has no theorem."""
    return Rejected(f"not certified: this program doesn't know the {what} {json.dumps(name)[:80]}")


def exact(record: Record, name: str) -> Fraction:
    """Return a field that is written exactly: a whole number, or a text such as "3/4"."""
    value = str(record[name]) if type(record[name]) is int else record[name]
    require(isinstance(value, str) and bool(_NUMBER.fullmatch(value)), f"{name} isn't an exact number")
    return Fraction(value)


def whole(record: Record, name: str) -> int:
    """Return a field that is a whole number of at least 1."""
    number = exact(record, name)
    require(number.denominator == 1 and number >= 1, f"{name} isn't a whole number of at least 1")
    return int(number)


def table(value: Any, *widths: int) -> list[list[int]]:
    """Return rows of whole numbers, as many in each row as its width."""
    plain = isinstance(value, list) and all(isinstance(row, list) for row in value)
    require(plain and value and [len(row) for row in value] == [*widths], "a table has other rows")
    require(all(type(one) is int for row in value for one in row), "a table has other than whole numbers")
    return value  # type: ignore


def of_float(record: Record, name: str) -> Fraction:
    """Return a finite float of a label or a ledger as the exact number that it is."""
    value = record[name]
    require(type(value) in (int, float) and 0 <= value < math.inf, f"{name} isn't a finite number from 0")
    return Fraction(value)


def ball(number: Fraction) -> arb:
    """Return a ball that contains an exact number."""
    return arb(fmpq(number.numerator, number.denominator))


def below(point: arb) -> arb:
    """Return the probability that a standard normal is at most `point`."""
    return (-point / arb(2).sqrt()).erfc() / 2


def gaussian_delta(mu: arb, epsilon: arb) -> arb:
    """Return the exact delta of a Gaussian release of sensitivity `mu` deviations (Balle and Wang 2018)."""
    return below(mu / 2 - epsilon / mu) - epsilon.exp() * below(-mu / 2 - epsilon / mu)


class Cost(NamedTuple):
    """What releases cost together."""

    mu_squared: arb = arb(0)  # The sum of squared sensitivities over variances of Gaussian noise.
    pure: arb = arb(0)
    failing: arb = arb(0)  # The probability that no bound holds.
    closeness: arb = arb(0)  # Bounds the log-ratio of discrete and of rounded continuous noise.

    def plus(self, other: Cost) -> Cost:
        """Return the cost of both, which may depend on each other's results."""
        return Cost(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, count: int) -> Cost:
        """Return the cost of as many releases."""
        return Cost(*(one * count for one in self))

    def within(self, epsilon: arb, delta: arb) -> bool:
        """Return whether the releases are (epsilon, delta)-private, by basic composition of the parts."""
        left = epsilon - self.pure - 2 * self.closeness
        gaussian = arb(0) if self.mu_squared == 0 else gaussian_delta(self.mu_squared.sqrt(), left)
        return bool(left >= 0) and bool(self.closeness.exp() * gaussian + self.failing <= delta)

    def within_for(self, people: int, epsilon: arb, delta: arb) -> bool:
        """Return the same for a group: mu and pure losses grow by its size, a failure also by e^epsilon."""
        if self.failing == 0:
            group = self._replace(mu_squared=self.mu_squared * people**2, pure=self.pure * people)
            return group.within(epsilon, delta)
        one = epsilon / people
        return self.within(one, delta / sum((one * before).exp() for before in range(people)))


def _scale(record: Record) -> Fraction:
    scale = exact(record, "scale")
    require(0 < scale <= 2**55, "scale isn't in (0, 2^55] steps, where draws are exact")
    return scale


def _moved(record: Record, *, norm: str) -> arb:
    """Return how far one secret moves the input in steps; rounding adds at most one step per coordinate."""
    require(record["norm"] == norm, f"this noise needs a sensitivity in the {norm} norm")
    require(isinstance(record["rounded"], bool), "rounded isn't true or false")
    many = arb(whole(record, "coordinates") if record["rounded"] else 0)
    return ball(exact(record, "sensitivity")) + (many if norm == "l1" else many.sqrt())


def _gaussian(moved: arb, variance: Fraction, record: Record) -> Cost:
    """Return the cost of discrete noise that is like continuous noise of this variance, in steps."""
    require(variance > 0, "scale isn't above 2 steps, outside of the proof")
    mu_squared = moved**2 / ball(variance)
    require(mu_squared <= 64, "scale is below 1/8 of the sensitivity, outside of the proof")
    return Cost(mu_squared=mu_squared, closeness=arb(whole(record, "coordinates")) / arb(2) ** 111)


def _variance(record: Record) -> Fraction:
    """Return s^2; an entry off the diagonal of a symmetric matrix counts twice in the norm."""
    off = 2 * (exact(record, "off_diagonal") ** 2 - 4) if "off_diagonal" in record else _scale(record) ** 2
    return min(_scale(record) ** 2 - 4, off)


def discrete_gaussian(record: Record) -> Cost:
    """Return the cost of discrete Gaussian noise: variance s^2 + 4 hides what a continuous s^2 hides."""
    return _gaussian(_moved(record, norm="l2"), _variance(record), record)


def discrete_laplace(record: Record) -> Cost:
    """Return the pure cost of discrete Laplace noise: the l1 distance in steps over the scale."""
    scale = _scale(record)
    if "off_diagonal" in record:
        scale = min(scale, 2 * exact(record, "off_diagonal"))
    loss = _moved(record, norm="l1") / ball(scale)
    require(loss <= 33, "scale is below 1/32 of the sensitivity, outside of the proof")
    return Cost(pure=loss)


def randomized_response(record: Record) -> Cost:
    """Return the cost of keeping one of several answers, from the counts of words that are drawn from."""
    other = whole(record, "other")
    keep = whole(record, "words") - whole(record, "levels") * other
    require(keep > 0, "other answers take all random words")
    return Cost(pure=ball(Fraction(max(keep, other), min(keep, other))).log())


def channel(record: Record) -> Cost:
    """Return the cost of a table of reports: the largest ratio of two probabilities of one report."""
    columns = table(record["columns"], *[2] * len(record["columns"]))
    require(all(most >= least >= 1 for most, least in columns), "a largest count is below the least one")
    return Cost(pure=ball(max(Fraction(*one) for one in columns)).log())


def threshold_selection(record: Record) -> Cost:
    """Return the cost of releasing names whose sums pass: a user adds one / sqrt(n) to n <= most names."""
    one, scale = ball(exact(record, "one")), _scale(record)
    threshold, failing = ball(exact(record, "threshold")), ball(exact(record, "failing"))
    require(whole(record, "most") <= whole(record, "coordinates"), "a user has more names than there are")
    cost = _gaussian(one + arb(whole(record, "coordinates")).sqrt(), scale**2 - 4, record)
    ranges, tried = [(1, whole(record, "most"))], 0
    while ranges:
        first, last = ranges.pop()
        tried += 1
        room = threshold - one / arb(first).sqrt() - 2
        if not last * below(-room / ball(scale)) <= failing:
            require(first < last and tried < _MOST_RANGES, "a name of one user passes more often than stated")
            middle = (first + last) // 2
            ranges += [(first, middle), (middle + 1, last)]
    return cost._replace(failing=failing)


def importance_sampling(record: Record) -> Cost:
    """Return the cost of a sample in which each vector has the largest weight that costs at most epsilon."""
    epsilon, longest = exact(record, "epsilon"), exact(record, "sensitivity")
    require(whole(record, "max_weight") <= 2**32, "max_weight is above 2^32")
    require(longest <= epsilon * _scale(record), "the longest vector costs more than epsilon with weight 1")
    return Cost(pure=ball(epsilon))


def continual_gaussian(record: Record) -> Cost:
    """Return the cost of all releases of a period: each combines what entered so far, plus noise.

    A column has the weights of one release's input in it and in each later release.
    `entries` bounds the sum of squares of what one user enters, in whole units.
    """
    columns = [one for matrix in record["matrices"] for one in table(matrix, *range(len(matrix), 0, -1))]
    squared = exact(record, "entries") * max(sum(weight**2 for weight in column) for column in columns)
    require(squared > 0, "a continual release without weights")
    return _gaussian(ball(squared).sqrt(), _scale(record) ** 2 - 4, record)


def shared_gaussian(record: Record) -> Cost:
    """Return the cost of a sum to which parties add parts of the noise, which `honest` ones keep secret."""
    # h discrete Gaussians of variance v + 4 are like one of h (v + 4) up to 4.4 h exp(-pi^2 v) each.
    honest, variance = whole(record, "honest"), _variance(record)
    require(honest <= whole(record, "parties"), "there are more honest parties than parties")
    cost = _gaussian(_moved(record, norm="l2"), variance * honest, record)
    many = ball(Fraction(44, 10) * honest * whole(record, "coordinates"))
    return cost.plus(Cost(closeness=many * (-(arb.pi() ** 2) * ball(variance / 2)).exp()))


_UNITS, _NEIGHBORS, _TRUST = ("user", "rating", "value"), ("add-or-remove", "replace"), ("central", "joint")
_LOCAL = {"randomized-response", "channel"}  # The mechanisms of users who trust nobody.
_ADDITIVE = "norm sensitivity rounded coordinates scale"
# The function that prices a mechanism, and the fields of its releases besides a name and a count.
MECHANISMS: dict[str, tuple[Callable[[Record], Cost], str]] = {
    "discrete-gaussian": (discrete_gaussian, _ADDITIVE),
    "discrete-laplace": (discrete_laplace, _ADDITIVE),
    "randomized-response": (randomized_response, "words other levels"),
    "channel": (channel, "columns"),
    "threshold-selection": (threshold_selection, "one scale threshold most coordinates failing"),
    "importance-sampling": (importance_sampling, "sensitivity scale epsilon max_weight"),
    "continual-gaussian": (continual_gaussian, "matrices entries coordinates scale"),
    "shared-gaussian": (shared_gaussian, f"{_ADDITIVE} honest parties"),
}


def cost_of(release: Record) -> Cost:
    """Return the cost of one release of a certificate; no field of it is left unread."""
    kind = release["mechanism"]
    if kind not in MECHANISMS:
        raise unknown("mechanism", kind)
    priced, fields = MECHANISMS[kind]
    needed = {"mechanism", "name", "count", *fields.split()}
    more = {"off_diagonal"} if fields.startswith(_ADDITIVE) else set()
    require(needed <= release.keys() <= needed | more, f"{kind} has missing or unknown fields")
    require(isinstance(release["name"], str), "a release has no name")
    return priced(release).times(whole(release, "count"))


def read(text: str | bytes) -> Any:
    """Return what a text in JSON states; of a key that is there twice, readers could use either value."""
    return json.loads(text, object_pairs_hook=_record)


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(dict(pairs)) == len(pairs), "a key is there twice")
    return dict(pairs)


def canonical(record: Record) -> bytes:
    """Return a record without its digest, as bytes: keys sorted, no blanks."""
    rest = {key: value for key, value in record.items() if key != "digest"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")


def check_certificate(certificate: Record) -> str:
    """Return a sentence about a certificate whose releases prove its claim."""
    claim, releases = certificate["claim"], certificate["releases"]
    version = certificate["version"]
    require((certificate["format"], version, type(version)) == (FORMAT, VERSION, int), "another format")
    stated = hashlib.sha256(canonical(certificate)).hexdigest()
    require(certificate["digest"] == stated, "the digest isn't that of the certificate")
    known = {"format", "version", "claim", "releases", "digest"}
    own = {"epsilon", "delta", "unit", "neighbors", "people"}
    require(certificate.keys() == known and claim.keys() == own, "the certificate has other fields")
    require(isinstance(releases, list) and bool(releases), "the certificate lists no release")
    epsilon, delta, people = exact(claim, "epsilon"), exact(claim, "delta"), whole(claim, "people")
    require(epsilon > 0 and delta < 1, "the claim isn't a guarantee")
    level = f"epsilon {float(epsilon):g}, delta {float(delta):g}"
    unit, neighbors = claim["unit"], claim["neighbors"]
    require(unit in _UNITS and neighbors in _NEIGHBORS, "not certified: an unknown privacy definition")
    require(people <= 1_000, "not certified: a group of more than 1,000 people")
    proved = reduce(Cost.plus, map(cost_of, releases)).within_for(people, ball(epsilon), ball(delta))
    require(proved, f"the releases cost more than {level}")
    who = f"{unit} ({neighbors})" if people == 1 else f"group of {people} {unit}s ({neighbors})"
    return f"{level} per {who}, {len(releases)} releases"


def check_label(label: Record) -> str:
    """Return a sentence about a label whose certificate proves at least what its guarantee states."""
    guarantee, certificate = label["guarantee"], label.get("certificate")
    require(guarantee["simulated"] is False, "the noise was simulated, so it protects nobody")
    require(certificate is not None, "not certified: the file has no certificate")
    sentence, claim = check_certificate(certificate), certificate["claim"]  # type: ignore
    for name in ("epsilon", "delta"):
        require(exact(claim, name) <= of_float(guarantee, name), f"the label states a smaller {name}")
    about = (claim["unit"], claim["neighbors"], claim["people"])
    same = about == (guarantee["unit"], guarantee["neighbours"], 1)
    require(same, "the certificate is about another privacy definition than the label")
    kinds = {one["mechanism"] for one in certificate["releases"]}  # type: ignore
    local = guarantee["trust"] == "local" and kinds <= _LOCAL
    require(local or guarantee["trust"] in _TRUST, "the mechanisms don't give the label's trust model")
    stated = [json.dumps(one["text"])[:200] for one in guarantee["assumes"]]
    return "\n".join([sentence, *(f"not checked, assumed: {one}" for one in stated or ["nothing is stated"])])


def check_model(path: Path) -> str:
    """Return a sentence about a model file that is as it was written, and whose label is proved."""
    with zipfile.ZipFile(path) as archive:
        require(sum(one.file_size for one in archive.infolist()) <= _MOST_BYTES, "the model is too large")
        require(sorted(archive.namelist()) == ["arrays.npz", "label.json"], "the file isn't a model")
        label, arrays = read(archive.read("label.json")), archive.read("arrays.npz")
    both = hashlib.sha256(hashlib.sha256(canonical(label)).digest() + hashlib.sha256(arrays).digest())
    require(label["digest"] == both.hexdigest(), "the model was changed after it was written")
    return check_label(label)


def leaves(events: Sequence[Record], times: int = 1) -> Iterator[tuple[Cost, int]]:
    """Yield the cost of each mechanism that a ledger records for a release, and how often it ran."""
    for event in events:
        kind = event["kind"]
        if kind == "ComposedDpEvent":
            yield from leaves(event["events"], times)
        elif kind == "SelfComposedDpEvent":
            yield from leaves([event["event"]], times * whole(event, "count"))
        elif kind in ("GaussianDpEvent", "LaplaceDpEvent"):
            require(of_float(event, "noise_multiplier") > 0, "an event has no noise")
            loss = ball(1 / of_float(event, "noise_multiplier"))
            yield (Cost(mu_squared=loss**2) if kind == "GaussianDpEvent" else Cost(pure=loss)), times
        elif kind == "ZCDpEvent" and event["rho"] == 0:
            yield Cost(pure=ball(of_float(event, "xi"))), times
        elif kind == "FailureEvent":
            yield Cost(failing=ball(of_float(event, "probability"))), times
        elif kind != "NoOpDpEvent":
            raise unknown("event", kind)


def _rows(connection: sqlite3.Connection, table: str, *columns: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table, each compared with the checksum in its own guarantee."""
    for row in connection.execute(f"SELECT id, guarantee, {', '.join(columns)} FROM {table} ORDER BY id"):
        own = dict(zip(columns, row[2:], strict=True))
        guarantee = read(row[1])
        seal = guarantee.pop("row", None)
        checksum = hashlib.sha256(json.dumps([own, guarantee], sort_keys=True).encode()).hexdigest()
        require(seal in (None, checksum[:32]), f"row {row[0]} of {table} was changed")
        yield {**own, "id": row[0], "guarantee": guarantee}


def check_database(path: Path) -> str:
    """Return a sentence about a continual release, or about a ledger whose events and sums fit."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        if ("settings",) in connection.execute("SELECT name FROM sqlite_master").fetchall():
            ((content,),) = connection.execute("SELECT content FROM settings")
            ((made, seeded),) = connection.execute("SELECT count(*), total(simulated) FROM releases")
            require(seeded == 0, "the noise was simulated, so it protects nobody")
            year = read(content)
            said = check_label({"guarantee": year["promise"], "certificate": year.get("certificate")})
            covered = min(len(one["matrices"][0]) for one in year["certificate"]["releases"])
            require(made <= covered, f"{made} releases, and the certificate is about {covered}")
            return said
        numbers = ("epsilon", "delta", "frame", "events")
        spent = list(_rows(connection, "spendings", "time", "dataset", "what", *numbers))
        budgets = {one["dataset"]: one for one in _rows(connection, "budgets", "time", "dataset", "reason")}
    for row in spent:
        row["events"] = read(row["events"])
        own = row["guarantee"]
        stated = (float(own["epsilon"]), own["delta"], _frame(own))
        same = stated == (row["epsilon"], row["delta"], row["frame"])
        require(same, f"entry {row['id']} contradicts itself")
        if row["events"] and row["epsilon"] < math.inf:
            total = reduce(Cost.plus, (one.times(many) for one, many in leaves(row["events"])), Cost())
            proved = total.within(ball(of_float(row, "epsilon")), ball(of_float(row, "delta")))
            require(proved, f"entry {row['id']} costs more than it states")
    for budget in budgets.values():
        _check_budget(budget, spent)
    silent = sum(not any(leaves(row["events"])) for row in spent)
    rest = f", {silent} of them stated without events" if silent else ""
    return f"{len(spent)} ledger entries{rest}, {len(budgets)} budgets"


def _frame(guarantee: Record) -> str:
    """Return the privacy definition of a guarantee, as ledgers write it."""
    return "/".join(guarantee[key] for key in ("unit", "neighbours", "trust"))


def _check_budget(budget: Record, spent: Sequence[Record]) -> None:
    """Raise unless the spending in the period up to the latest is within a dataset's budget."""
    limit, name = budget["guarantee"], budget["dataset"]
    counted = [row for row in spent if row["dataset"] == name and row["id"] > limit.get("after", 0)]
    if "renews" in limit and counted:
        times = [datetime.fromisoformat(row["time"]) for row in counted]
        days = [(time.year * 12 + time.month, time.day) for time in times]
        last, months = max(days), {"yearly": 12, "quarterly": 3, "monthly": 1}[limit["renews"]]
        counted = counted[[day > (last[0] - months, last[1]) for day in days].index(True) :]
    counted = [row for row in counted if row["frame"] == _frame(limit)]
    epsilon, delta = of_float(limit, "epsilon"), of_float(limit, "delta")
    account = limit.get("account", "adding")
    if account == "adding":
        spent_on = {one: sum(of_float(row, one) for row in counted) for one in ("epsilon", "delta")}
        fits = spent_on["epsilon"] <= epsilon * _ADDING_SLACK and spent_on["delta"] <= delta * _ADDING_SLACK
    elif account in ("gaussian", "concentrated"):
        reached = gaussian_delta if account == "gaussian" else _concentrated_delta
        weight = sum((_weight(row, account) for row in counted), arb(0))
        fits = weight == 0 or reached(weight.sqrt(), ball(epsilon)) <= ball(delta)
    else:
        raise unknown("account", account)
    require(fits, f"the spending on {json.dumps(name)[:80]} exceeds its budget")


def _weight(row: Record, account: str) -> arb:
    """Return the lesser of two bounds on an entry's weight: mu^2 in a Gaussian account, rho in the other."""
    found = [_pure_weight(ball(of_float(row, "epsilon")), account)] if row["delta"] == 0 else []
    if any(leaves(row["events"])):
        found.append(arb(0))
        for cost, times in leaves(row["events"]):
            require(cost.failing == 0, "an account by weights has an entry that may fail")
            gaussian = cost.mu_squared if account == "gaussian" else cost.mu_squared / 2
            found[-1] += times * (gaussian + _pure_weight(cost.pure, account))
    require(bool(found), "an account by weights has an entry without events")
    return found[0] if found[0] <= found[-1] else found[-1]


def _pure_weight(epsilon: arb, account: str) -> arb:
    """Return the weight of the Gaussian, or the concentrated, release that shows as much as a pure loss."""
    if account == "concentrated" or epsilon == 0:
        return epsilon**2 / 2 if epsilon <= 2 else epsilon
    # mu = 2 z with P(Z > z) = 1 / (1 + e^epsilon). Bisection keeps an upper end that is surely large enough.
    tail, low, high = 1 / (1 + epsilon.exp()), arb(0), epsilon + 2
    for _ in range(100):
        middle = ((low + high) / 2).mid()
        low, high = (low, middle) if below(-middle) <= tail else (middle, high)
    return (2 * high) ** 2


def _concentrated_delta(root: arb, epsilon: arb) -> Any:
    """Return a delta of releases that are zero-concentrated with rho = root^2, at the best of many orders."""

    def exponent(order: Any, rho: Any, loss: Any, log: Callable[[Any], Any]) -> Any:
        return (order - 1) * (rho * order - loss) + order * log(1 - 1 / order) - log(order - 1)

    orders = (1 + 10 ** (step / 500 - 4) for step in range(5_501))
    best = min(orders, key=lambda order: exponent(order, float(root**2), float(epsilon), math.log))
    return exponent(ball(Fraction(best)), root**2, epsilon, arb.log).exp()


def check(path: Path) -> str:
    """Return a sentence about a file whose claim is proved, or raise Rejected."""
    try:
        require(path.stat().st_size <= _MOST_BYTES, "the file is too large for this program")
        data = path.read_bytes()
        if data.startswith(b"PK"):
            return check_model(path)
        if data.startswith(b"SQLite format 3"):
            return check_database(path)
        beside = path.with_name(f"{path.name}.label.json")
        content = read((beside if beside.is_file() else path).read_text(encoding="utf-8"))
        found = hashlib.sha256(data).hexdigest()
        require(not beside.is_file() or content["sha256"] == found, "the label is that of other data")
        return check_label(content) if "guarantee" in content else check_certificate(content)
    except Rejected:
        raise
    except Exception as error:  # A file may be of any kind. What can't be read is rejected.
        raise Rejected(f"this isn't a claim ({type(error).__name__})") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one file, print the verdict, and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) != 1 or given[0] == "--help":
        print("Usage: discreet-verify FILE (a model, synthetic data, a ledger, a certificate)")
        return 0 if given == ["--help"] else 2
    writer = "its signature" if Path(f"{given[0]}.sig").is_file() else "it has no signature"
    try:
        print(f"certified: {check(Path(given[0]))}")
    except Rejected as error:
        print(f"rejected: {error}")
        return 1
    print(f"not checked: who wrote the file ({writer}), and that a program made these releases and no others")
    return 0


if __name__ == "__main__":
    sys.exit(main())
