"""Check a privacy claim without the program that made it: `discreet-verify FILE`.

FILE is a model, synthetic data, a ledger, a continual release, or a certificate. It shares no code with
`discreet`. It computes in ball arithmetic, where every number is an interval that contains the exact one. So
a claim that it accepts is true for the mechanisms that the certificate states. proofs/certificate.md
describes the format and the theorem behind each mechanism.

The command prints `certified` and exits with 0, or prints `rejected` with the reason and exits with 1. After
`certified` it lists what it didn't check: the assumptions, who wrote the file, and what the program did.
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
from datetime import datetime
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from flint import arb, ctx, fmpq

FORMAT, VERSION = "discreet-certificate", 1
# A hostile file must not keep this program busy: bytes of a file, and ranges that a tail is bounded on.
_MOST_BYTES, _MOST_RANGES = 1 << 28, 4_096
_NUMBER = re.compile(r"\d{1,5000}(/[1-9]\d{0,4999})?")
# Digits after which a ball is cut off: enough for every delta above 2^-400.
ctx.prec = 640
# Ten releases of 0.1 fit a budget of 1, although the floats add up to more.
_ADDING_SLACK = 1 + Fraction(1, 10**12)

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
    value = record[name]
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0 and value.bit_length() < 16_000:
        return Fraction(value)
    require(isinstance(value, str) and bool(_NUMBER.fullmatch(value)), f"{name} isn't an exact number")
    return Fraction(value)


def whole(record: Record, name: str) -> int:
    """Return a field that is a whole number of at least 1."""
    number = exact(record, name)
    require(number.denominator == 1 and number >= 1, f"{name} isn't a whole number of at least 1")
    return int(number)


def of_float(record: Record, name: str) -> Fraction:
    """Return a finite float of a label or a ledger as the exact number that it is."""
    value = record.get(name)
    number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
    require(number, f"{name} isn't a finite number of at least 0")
    return Fraction(value)  # type: ignore[arg-type]


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
    """What releases cost together: a Gaussian part, a pure part, and a probability of failure.

    `mu_squared` adds up squared sensitivities over variances. `closeness` bounds the log-ratio of discrete
    noise and rounded continuous noise.
    """

    mu_squared: arb = arb(0)
    pure: arb = arb(0)
    failing: arb = arb(0)
    closeness: arb = arb(0)

    def plus(self, other: Cost) -> Cost:
        """Return the cost of both, which may depend on each other's results."""
        return Cost(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, count: int) -> Cost:
        """Return the cost of as many releases."""
        return Cost(*(one * count for one in self))

    def within(self, epsilon: arb, delta: arb) -> bool:
        """Return whether the releases are (epsilon, delta)-private, by basic composition of the parts."""
        left = epsilon - self.pure - 2 * self.closeness
        if not left >= 0:
            return False
        gaussian = arb(0) if self.mu_squared == 0 else gaussian_delta(self.mu_squared.sqrt(), left)
        return bool(self.closeness.exp() * gaussian + self.failing <= delta)

    def within_for(self, people: int, epsilon: arb, delta: arb) -> bool:
        """Return the same for a group: mu and pure losses grow by its size, a failure also by e^epsilon."""
        if self.failing == 0:
            group = self._replace(mu_squared=self.mu_squared * people**2, pure=self.pure * people)
            return group.within(epsilon, delta)
        one = epsilon / people
        return self.within(one, delta / sum((one * before).exp() for before in range(people)))


# Mechanisms: each function takes the fields of a release and returns the cost of making it once


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
    worst = Fraction(1)
    for most, least in record["columns"]:
        worst = max(worst, Fraction(whole({"count": most}, "count"), whole({"count": least}, "count")))
    require(bool(record["columns"]), "columns are missing")
    return Cost(pure=ball(worst).log())


def threshold_selection(record: Record) -> Cost:
    """Return the cost of releasing the names whose noisy sums reach a threshold, from a secret set of names.

    A user adds one / sqrt(n) to each of n <= most names. Sums of names that others have, too, are a Gaussian
    release. A name that one user alone has passes with a probability that the threshold makes small.
    """
    one, scale = ball(exact(record, "one")), _scale(record)
    threshold, failing = ball(exact(record, "threshold")), ball(exact(record, "failing"))
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
    # If the longest vector costs at most epsilon with weight 1, then every vector has such a weight.
    epsilon, longest = exact(record, "epsilon"), exact(record, "sensitivity")
    require(whole(record, "max_weight") <= 2**32, "max_weight is above 2^32")
    require(longest <= epsilon * _scale(record), "the longest vector costs more than epsilon with weight 1")
    return Cost(pure=ball(epsilon))


def continual_gaussian(record: Record) -> Cost:
    """Return the cost of all releases of a period: each combines what entered so far, plus noise.

    A matrix is a list of columns: the weights that the input of one release has in it and in later releases.
    `entries` bounds the sum of squares of what one user enters, in whole units.
    """
    columns = [column for matrix in record["matrices"] for column in matrix]
    plain = all(type(weight) is int for column in columns for weight in column)
    require(bool(columns) and plain, "matrices aren't lists of columns of whole numbers")
    squared = exact(record, "entries") * max(sum(weight**2 for weight in column) for column in columns)
    return _gaussian(ball(squared).sqrt(), _scale(record) ** 2 - 4, record)


def shared_gaussian(record: Record) -> Cost:
    """Return the cost of a sum to which parties add parts of the noise, which `honest` ones keep secret."""
    # h discrete Gaussians of variance v + 4 are like one of h (v + 4) up to 4.4 h exp(-pi^2 v) each.
    honest, variance = whole(record, "honest"), _variance(record)
    require(honest <= whole(record, "parties"), "there are more honest parties than parties")
    cost = _gaussian(_moved(record, norm="l2"), variance * honest, record)
    many = ball(Fraction(44, 10) * honest * whole(record, "coordinates"))
    return cost.plus(Cost(closeness=many * (-(arb.pi() ** 2) * ball(variance / 2)).exp()))


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
    return priced(release).times(whole(release, "count"))


# Certificates and labels


def canonical(record: Record) -> bytes:
    """Return a record without its digest, as bytes: keys sorted, no blanks."""
    rest = {key: value for key, value in record.items() if key != "digest"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")


def check_certificate(certificate: Record) -> str:
    """Return a sentence about a certificate whose releases prove its claim."""
    claim, releases = certificate["claim"], certificate["releases"]
    require((certificate["format"], certificate["version"]) == (FORMAT, VERSION), "this is another format")
    stated = hashlib.sha256(canonical(certificate)).hexdigest()
    require(certificate["digest"] == stated, "the digest isn't that of the certificate")
    known = {"format", "version", "claim", "releases", "digest"}
    own = {"epsilon", "delta", "unit", "neighbors", "people"}
    require(certificate.keys() == known and claim.keys() == own, "the certificate has other fields")
    require(isinstance(releases, list) and bool(releases), "the certificate lists no release")
    epsilon, delta, people = exact(claim, "epsilon"), exact(claim, "delta"), whole(claim, "people")
    require(epsilon > 0 and delta < 1, "the claim isn't a guarantee")
    level = f"epsilon {float(epsilon):g}, delta {float(delta):g}"
    require(people <= 1_000, "not certified: a group of more than 1,000 people")
    proved = reduce(Cost.plus, map(cost_of, releases)).within_for(people, ball(epsilon), ball(delta))
    require(proved, f"the releases cost more than {level}")
    return f"{level}{'' if people == 1 else f' for any {people} people together'}, {len(releases)} releases"


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
    stated = [json.dumps(one["text"])[:200] for one in guarantee["assumes"]]
    return "\n".join([sentence, *(f"not checked, assumed: {one}" for one in stated or ["nothing is stated"])])


def check_model(path: Path) -> str:
    """Return a sentence about a model file that is as it was written, and whose label is proved."""
    with zipfile.ZipFile(path) as archive:
        require(sum(one.file_size for one in archive.infolist()) <= _MOST_BYTES, "the model is too large")
        require(sorted(archive.namelist()) == ["arrays.npz", "label.json"], "the file isn't a model")
        label, arrays = json.loads(archive.read("label.json")), archive.read("arrays.npz")
    both = hashlib.sha256(hashlib.sha256(canonical(label)).digest() + hashlib.sha256(arrays).digest())
    require(label["digest"] == both.hexdigest(), "the model was changed after it was written")
    return check_label(label)


# Ledgers


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
        guarantee = json.loads(row[1])
        seal = guarantee.pop("row", None)
        checksum = hashlib.sha256(json.dumps([own, guarantee], sort_keys=True).encode()).hexdigest()
        require(seal in (None, checksum[:32]), f"row {row[0]} of {table} was changed")
        yield {**own, "id": row[0], "guarantee": guarantee}


def check_database(path: Path) -> str:
    """Return a sentence about a continual release, or about a ledger: events and sums fit what it states."""
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "settings" in tables:
            ((content,),) = connection.execute("SELECT content FROM settings")
            seeded = connection.execute("SELECT 1 FROM releases WHERE simulated").fetchall()
            require(not seeded, "the noise was simulated, so it protects nobody")
            year = json.loads(content)
            return check_label({"guarantee": year["promise"], "certificate": year.get("certificate")})
        numbers = ("epsilon", "delta", "frame", "events")
        spent = list(_rows(connection, "spendings", "time", "dataset", "what", *numbers))
        budgets = {one["dataset"]: one for one in _rows(connection, "budgets", "time", "dataset", "reason")}
    finally:
        connection.close()
    for row in spent:
        row["events"] = json.loads(row["events"])
        stated = float(row["guarantee"]["epsilon"]), row["guarantee"]["delta"]
        require((row["epsilon"], row["delta"]) == stated, f"entry {row['id']} contradicts itself")
        if row["events"] and row["epsilon"] < math.inf:
            total = reduce(Cost.plus, (one.times(many) for one, many in leaves(row["events"])), Cost())
            proved = total.within(ball(of_float(row, "epsilon")), ball(of_float(row, "delta")))
            require(proved, f"entry {row['id']} costs more than it states")
    for budget in budgets.values():
        _check_budget(budget, spent)
    silent = sum(not row["events"] for row in spent)
    rest = f", {silent} of them stated without events" if silent else ""
    return f"{len(spent)} ledger entries{rest}, {len(budgets)} budgets"


def _check_budget(budget: Record, spent: Sequence[Record]) -> None:
    """Raise unless the spending of the latest period is within a dataset's latest budget."""
    limit, name = budget["guarantee"], budget["dataset"]
    counted = [row for row in spent if row["dataset"] == name and row["id"] > limit.get("after", 0)]
    if "renews" in limit and counted:
        latest = max(_period(row, limit) for row in counted)
        counted = counted[[_period(row, limit) for row in counted].index(latest) :]
    frame = "/".join(limit[key] for key in ("unit", "neighbours", "trust"))
    counted = [row for row in counted if row["frame"] == frame]
    epsilon, delta = of_float(limit, "epsilon"), of_float(limit, "delta")
    account = limit.get("account", "adding")
    if account == "adding":
        fits = all(
            sum((of_float(row, one) for row in counted), Fraction(0)) <= most * _ADDING_SLACK
            for one, most in (("epsilon", epsilon), ("delta", delta))
        )
    elif account in ("gaussian", "concentrated"):
        reached = gaussian_delta if account == "gaussian" else _concentrated_delta
        weight = sum((_weight(row, account) for row in counted), arb(0))
        fits = weight == 0 or reached(weight.sqrt(), ball(epsilon)) <= ball(delta)
    else:
        raise unknown("account", account)
    require(fits, f"the spending on {json.dumps(name)[:80]} exceeds its budget")


def _period(row: Record, limit: Record) -> tuple[int, int]:
    when, months = datetime.fromisoformat(row["time"]), {"yearly": 12, "quarterly": 3, "monthly": 1}
    return when.year, (when.month - 1) // months[limit["renews"]]


def _weight(row: Record, account: str) -> arb:
    """Return the lesser of two bounds on an entry's weight: mu^2 in a Gaussian account, rho in the other."""
    found = [_pure_weight(ball(of_float(row, "epsilon")), account)] if row["delta"] == 0 else []
    if row["events"]:
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


# Files


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
        content = json.loads((beside if beside.is_file() else path).read_text(encoding="utf-8"))
        found = hashlib.sha256(data).hexdigest()
        require(not beside.is_file() or content["sha256"] == found, "the label is that of other data")
        return check_label(content) if "guarantee" in content else check_certificate(content)
    except Exception as error:
        # A file may be of any kind. What can't be read is rejected, whatever goes wrong.
        known = isinstance(error, Rejected)
        raise error if known else Rejected(f"this isn't a claim ({type(error).__name__})") from error


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
