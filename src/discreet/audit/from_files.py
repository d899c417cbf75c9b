"""Audit releases that start from files: neighboring files must lead to the same output.

The white-box audit starts from data in memory. This one starts from the text of a file. A release is recorded
on one file and replayed on files with one more user, whose ids, ratings and times are unusual. Given the
same mechanism outputs, everything released must be the same: the bytes of the model file, its label, released
scores, the rows of the ledger, and the error message where the release fails. Differences in the inputs of
the mechanisms have a privacy cost, as in the white-box audit.

One user's lines must not change how the others are read. Typical faults: one id turns a column of ids into
text, a new item renumbers the items, and many new items change a model's plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, final

from discreet.audit.errors import StrayError
from discreet.audit.findings import ExactSearch, Finding
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import Named, Player, Recorder
from discreet.core import PrivacyRandom, silent
from discreet.core.checks import DiscreetError
from discreet.data import Interactions, Schema, Vocabulary, open_data
from discreet.evaluation.private import evaluate_privately, fit_and_evaluate
from discreet.models import (
    Als,
    Estimator,
    FittedModel,
    Popularity,
    PrivateCatalog,
    PrivateFacts,
    PrivateScale,
    whole_promise,
)
from discreet.privacy import Guarantee, Ledger, Neighbors, Trust, Unit

#: User, item, rating and time, as written in the file.
Line = tuple[str, str, str, str]
_COLUMNS = ("user", "item", "rating", "time")
#: How the files are written. It is declared, since a guess would be a condition of the guarantee.
SCHEMA = Schema(columns=_COLUMNS, user="user", item="item", rating="rating", time="time")
ITEMS = tuple(str(10 * (item + 1)) for item in range(6))
# So many new items would change the plan of a model that reads the size of the catalog from the data.
_MANY = 5_001
#: All files have the same name, which is public.
_FILE = "ratings of a month.csv"


def _lines(items: tuple[str, ...], rating: str = "5", user: str = "900", moment: str = "7") -> list[Line]:
    return [(user, item, rating, moment) for item in items]


#: Lines of the added user, by what is unusual about them.
CANARIES: Mapping[str, list[Line]] = {
    "an item id in text": _lines(("zebra",)),
    "item ids that look like numbers": _lines(
        ("007", "+20", "-0", "20.0", "1e3", "\uff12\uff10", str(2**63))
    ),
    "an item id with a comma and quotes": _lines(('a, "b"',)),
    "a new number before all others": _lines(("-5", "0")),
    "a new number between others": _lines(("15", "20")),
    "a new number behind all others": _lines((str(10**12),)),
    "a user id in text": _lines(ITEMS[:3], user="zoe"),
    "a user id that looks like a number": _lines(ITEMS[3:], user="007"),
    "all items, and one of their own": _lines((*ITEMS, "unheard of")),
    "ratings in odd writing": [
        ("900", "10", "5e0", "1"),
        ("900", "20", "4.50", "2"),
        ("900", "30", "4,5", "3"),
    ],
    "times in odd writing": [
        ("900", "10", "4", "2020-01-01"),
        ("900", "20", "4", "1e9"),
        ("900", "30", "1", "-1"),
    ],
    "many items of their own": _lines(tuple(str(10**6 + item) for item in range(_MANY))),
}
#: Ratings outside a declared scale, which are rejected when the file is read.
OUTSIDE: Mapping[str, list[Line]] = {
    "ratings far outside": [("900", "10", "1e30", "1"), ("900", "20", "-1e30", "2")],
    "a rating of 0 and one of 100": [("900", "10", "0", "1"), ("900", "20", "100", "2")],
}


def specs() -> Iterator[tuple[str, list[Line]]]:
    """Yield the lines of base files: with numbers as ids, with some ids in text, and with one item only."""
    people = [
        (str(user), item, str(1 + (user + index) % 5), str(user + index))
        for user in range(40)
        for index, item in enumerate(ITEMS)
        if (user + index) % 3
    ]
    yield "a file of numbers", people
    yield (
        "a file with text",
        [
            *people,
            *(("ann", item, "3", "5") for item in ITEMS[:2]),
            *((str(user), "film", "4", "9") for user in range(40)),
        ],
    )
    yield "a file of one item", [line for line in people if line[1] == ITEMS[0]]


def written(folder: Path, lines: list[Line]) -> Path:
    """Write the file into the folder, replacing the previous one."""
    path = folder / _FILE
    text = "\n".join(",".join(map(_field, line)) for line in [_COLUMNS, *lines])
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text


# A budget large enough that a few dozen users suffice to select items and a scale.
_CATALOG, _SCALE = PrivateCatalog(epsilon=8.0, delta=1e-3), PrivateScale(epsilon=4.0)
_SCORED = {True: "rmse", False: "hr@2"}
_LIMIT, _NAME = 1.0, "songs"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """How a release is made from a file: declared facts, privately selected facts, and the prior."""

    name: str
    chosen: PrivateFacts = field(default_factory=PrivateFacts)
    prior: str | None = None
    scores: str | None = None
    schema: Schema | None = SCHEMA

    def declared(self) -> dict[str, Any]:
        """Return the facts that are declared when the file is read."""
        facts: dict[str, Any] = {} if self.chosen.scale else {"low": 1.0, "high": 5.0}
        if self.chosen.catalog is None:
            facts |= {"catalog": Vocabulary.of(ITEMS), "drop_unknown": True}
        return {**facts, "max_per_user": 8, "schema": self.schema}

    def canaries(self, wanted: Collection[str] | None = None) -> dict[str, list[Line]]:
        """Return the canaries by name: all of them, or only those in `wanted`."""
        every = {**CANARIES, **(OUTSIDE if self.chosen.scale else {})}
        return {name: lines for name, lines in every.items() if wanted is None or name in wanted}


ROUTES: tuple[Route, ...] = (
    Route(name="catalog and scale declared"),
    Route(name="catalog chosen", chosen=PrivateFacts(catalog=_CATALOG)),
    Route(name="catalog and scale chosen", chosen=PrivateFacts(catalog=_CATALOG, scale=_SCALE)),
    Route(name="starts from an earlier release", prior="private"),
    Route(name="starts from als", prior="als"),
    Route(name="starts from a fit without privacy", prior="inf"),
    Route(name="starts from simulated noise", prior="simulated"),
    Route(name="private scores", scores="fit"),
    Route(name="private scores of a fit without privacy", scores="inf"),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Everything that a release makes visible, and its guarantee."""

    sentence: str
    file: bytes
    scores: str
    ledger: tuple[Any, ...]
    promise: Guarantee | None

    @property
    def claims(self) -> bool:
        """Return whether the outputs must agree: the release is private, or an error came before it."""
        return self.promise is None or self.promise.is_private

    def difference(self, other: Left) -> str | None:
        """Return the name of the first part that differs, or None."""
        for name in ("sentence", "ledger", "scores", "file"):
            if getattr(self, name) != getattr(other, name):
                return name
        return None


def has_files(estimator: Estimator) -> bool:
    """Return whether files are audited for this guarantee: joint trust, adding or removing one user."""
    promise = estimator.promise(_public().facts)
    people = (Unit.USER, Neighbors.ADD_OR_REMOVE, Trust.JOINT)
    return promise.definition == people and promise.is_private


def routes_of(estimator: Estimator) -> list[Route]:
    """Return the routes that a model supports; some have no prior, some cannot fit and score together."""
    shares = estimator.promise(_public().facts).delta > 0
    rated = estimator.feedback == "explicit" and estimator.reads_ratings
    starts = "prior" in estimator.settings and estimator.predicts_ratings
    return [
        route
        for route in ROUTES
        if (starts or route.prior is None)
        and (shares or route.scores != "fit")
        and (rated or route.chosen.scale is None)
    ]


def audit_files(
    name: str, estimator: Estimator, *, canaries: Collection[str] | None = None, seed: int = 0
) -> list[Finding]:
    """Record and replay releases over neighboring files, by every route; `canaries` limits what is tried."""
    found = [
        audit_route(name, estimator, route, canaries=canaries, seed=seed) for route in routes_of(estimator)
    ]
    return [*found, audit_budget(name, estimator)]


def audit_route(
    name: str, estimator: Estimator, route: Route, *, canaries: Collection[str] | None = None, seed: int = 0
) -> Finding:
    """Record and replay releases over neighboring files, by one route."""
    # The first leak of each kind is reported.
    found = ExactSearch()
    with TemporaryDirectory() as folder:
        promised = _promised(estimator, route, Path(folder))
        found.promised, found.delta = promised.epsilon, promised.delta
        for spec, people in specs():
            base = written(Path(folder), people)
            recorder = Recorder()
            here = released(estimator, route, base, PrivacyRandom.recorded(seed, recorder))
            names = names_of(base, route)
            for number, (canary, lines) in enumerate(route.canaries(canaries).items()):
                position = "first" if number % 2 else "last"
                file = written(Path(folder), [*lines, *people] if number % 2 else [*people, *lines])
                named = named_draw(route, names, names_of(file, route))
                player = Player(recorder.calls, named=named)
                found.fits += 1
                try:
                    there = released(estimator, route, file, PrivacyRandom.recorded(seed, player))
                    player.finish()
                except StrayError as error:
                    found.leaks.setdefault("draws", f"{canary}, {position} in {spec}: {error}")
                    continue
                if not (here.claims or there.claims):
                    continue
                if difference := here.difference(there):
                    found.leaks.setdefault(
                        difference,
                        f"{canary}, {position} in {spec}: "
                        f"given the same mechanism outputs, the {difference} differs",
                    )
                found.paid = max(found.paid, _paid(recorder, player, named, promised.delta))
    return found.finding(name, f"files: {route.name}", found.leaks.values())


def released(estimator: Estimator, route: Route, file: Path, random: PrivacyRandom) -> Left:
    """Make the release from the file and return everything it makes visible."""
    ledger, model, scores, promise, sentence = Ledger.in_memory(), None, "", None, ""
    with TemporaryDirectory() as folder:
        try:
            data = open_data(str(file), implicit=estimator.feedback == "implicit", **route.declared())
            starting = _starting(estimator, route, data, Path(folder), random)
            promise = whole_promise(starting, data, route.chosen)
            if route.scores is not None:
                scores = _scored(starting, route, data, ledger, random)
            else:
                model = starting.fit(
                    data,
                    select_items=route.chosen.catalog,
                    select_scale=route.chosen.scale,
                    ledger=ledger,
                    random=random,
                    progress=silent,
                )
        except StrayError:
            raise
        except DiscreetError as error:
            sentence = f"{type(error).__name__}: {error}"
        return Left(
            # The folder differs from run to run, so it is not compared.
            sentence=sentence.replace(folder, "FOLDER"),
            file=b"" if model is None else _bytes(model, folder),
            scores=scores,
            ledger=tuple(
                (
                    one.dataset,
                    one.what,
                    one.state,
                    one.events,
                    str(one.guarantee.to_json()).replace(folder, ""),
                )
                for one in ledger.entries()
            ),
            promise=promise,
        )


def _starting(
    estimator: Estimator, route: Route, data: Interactions, folder: Path, random: PrivacyRandom
) -> Estimator:
    """Return the estimator, with a prior fitted on the same data where the route has one."""
    if route.prior is None:
        return estimator
    if route.prior == "als":
        model = Als().fit(data)
    elif route.prior == "inf":
        model = estimator.clone(epsilon=math.inf).fit(data, progress=silent)
    elif route.prior == "simulated":
        model = estimator.fit(data, random=PrivacyRandom.simulate(7), progress=silent)
    else:
        model = estimator.fit(data, random=random, progress=silent)
        # Recorded noise replaces real noise here, so the label must not state "simulated".
        model = replace(model, guarantee=replace(model.guarantee, simulated=False))
    model.save(folder / "earlier")
    return estimator.clone(prior=str(folder / "earlier"))


def _scored(
    estimator: Estimator, route: Route, data: Interactions, ledger: Ledger, random: PrivacyRandom
) -> str:
    metric = _SCORED[estimator.predicts_ratings]
    if route.scores == "inf":
        # Where two items are nearly tied, one user decides which is first for all users.
        model = Popularity(epsilon=math.inf).fit(data)
        score = evaluate_privately(
            model, data, epsilon=estimator.epsilon, metric="hr@1", ledger=ledger, random=random
        )
        return str(score.to_json())
    found = fit_and_evaluate([estimator], data, metrics=[metric], share=0.2, ledger=ledger, random=random)
    return str({name: [one.to_json() for one in scores] for name, scores in found.scores.items()})


def audit_budget(name: str, estimator: Estimator) -> Finding:
    """Try to exceed a budget by naming the data differently from the budget."""
    found = ExactSearch(promised=_LIMIT, delta=estimator.delta)
    with TemporaryDirectory() as folder:
        _, people = next(specs())
        data = open_data(
            str(written(Path(folder), people)),
            implicit=estimator.feedback == "implicit",
            name="month3",
            **ROUTES[0].declared(),
        )
        dear = estimator.clone(epsilon=20 * _LIMIT)
        model = estimator.fit(data, random=PrivacyRandom.simulate(1), progress=silent)
        metric, random = _SCORED[estimator.predicts_ratings], PrivacyRandom.simulate(2)
        spending: dict[str, Callable[[Ledger], object]] = {
            "a fit": lambda book: dear.fit(data, ledger=book, random=random, progress=silent),
            "scores with a fit": lambda book: fit_and_evaluate(
                [dear], data, metrics=[metric], ledger=book, random=random
            ),
            "scores": lambda book: evaluate_privately(
                model, data, epsilon=20 * _LIMIT, metric=metric, ledger=book, random=random
            ),
        }
        found.fits = 1 + len(spending)
        for what, spend in spending.items():
            book = Ledger.in_memory()
            book.set_budget(_NAME, replace(dear.promise(data.facts), epsilon=_LIMIT))
            try:
                spend(book)
            except DiscreetError as error:
                if not book.entries():
                    continue
                found.leaks[what] = f"{what} recorded a cost before it was rejected: {error}"
                continue
            spent = book.entries()[-1].guarantee.epsilon
            found.leaks[what] = f"{what} spent epsilon={spent:g} outside the budget of epsilon={_LIMIT:g}"
    return found.finding(name, "files: a budget under another name", found.leaks.values())


def _promised(estimator: Estimator, route: Route, folder: Path) -> Guarantee:
    """Return the guarantee of all draws on a route, including that of an earlier release."""
    data = open_data(
        str(written(folder, next(specs())[1])),
        implicit=estimator.feedback == "implicit",
        **route.declared(),
    )
    promise = whole_promise(estimator, data, route.chosen)
    return promise + promise if route.prior == "private" else promise


def _paid(recorder: Recorder, player: Player, named: Named | None, delta: float) -> float:
    recorded, replayed = recorder.calls, player.calls
    if len(recorded) != len(replayed):
        return math.inf
    if named is not None:
        recorded, replayed = named.shared(recorded, replayed)
    return price(recorded, replayed).epsilon(delta)


def named_draw(route: Route, here: tuple[str, ...], there: tuple[str, ...]) -> Named | None:
    """Return which draw selects the catalog, if any: the first, or the one after the scale's."""
    if route.chosen.catalog is None:
        return None
    return Named(index=int(route.chosen.scale is not None), recorded=here, replayed=there)


def names_of(file: Path, route: Route) -> tuple[str, ...]:
    """Return the items of a file in the order in which they are selected."""
    data = open_data(str(file), **route.declared())
    return tuple(map(str, data.catalog.canonical().ids.tolist()))


def _public() -> Interactions:
    """Return example data; only their public facts are used."""
    return Interactions.from_arrays(
        [1, 2], [10, 20], [1.0, 5.0], catalog=Vocabulary.of([10, 20]), low=1.0, high=5.0
    )


def _bytes(model: FittedModel, folder: str) -> bytes:
    """Return the bytes of the published model file, without the path of this run's earlier model."""
    parameters = {
        name: value.replace(folder, "") if isinstance(value, str) else value
        for name, value in model.parameters.items()
    }
    path = Path(folder) / "model"
    replace(model, parameters=parameters).save(path)
    return path.read_bytes()
