"""`discreet budget`: show what a ledger has spent, set budgets in it, and plan releases."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal, localcontext
from pathlib import Path
from typing import Annotated, Any, final

import typer

from discreet.cli import lib
from discreet.cli.errors import (
    DatasetNotInLedger,
    LedgerMissing,
    NoPrivacyBudget,
    OptionEmpty,
    OptionMissing,
    OptionNeeds,
    OptionsConflict,
)
from discreet.cli.options.accounts import account_for
from discreet.cli.options.declared import AnyEpsilon, Force
from discreet.cli.options.parsing import checked_name, group
from discreet.cli.output.printing import Output, remark, show, table_of, write
from discreet.core import one_of, positive_finite

Name = Annotated[str | None, typer.Option("--name", help="The dataset to show, or to set a budget for.")]
LedgerFile = Annotated[Path, typer.Argument(help="A ledger file.")]
Page = Annotated[Path | None, typer.Option("--html", help="Also write the ledger to this HTML page.")]


@group()
@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WantedBudget:
    """The budget to set.

    Options:
        epsilon: Set the budget to this epsilon.
        delta: The budget's delta. Default: 1e-5.
        model: Set the budget for this model's privacy definition (unit, neighbors, trust). Default: the
            current budget's definition, or else a user's whole history with a trusted data owner.
        reason: Reason for raising the budget, which the ledger stores.
        account: How costs add up: adding (default), gaussian, or concentrated. Fixed from the first spending.
        renews: Count only the last 12 months (yearly), 3 months (quarterly), or month (monthly).
        renewed: Reset the spending now, under this assumption. Every later label states it.
    """

    epsilon: AnyEpsilon = None
    delta: float | None = None
    model: Annotated[str | None, "--for"] = None
    reason: str | None = None
    account: str | None = None
    renews: str | None = None
    renewed: Annotated[str | None, "--start-anew"] = None

    @property
    def stated(self) -> bool:
        """Return whether any option sets a budget."""
        return self != WantedBudget()


def show_ledger(file: LedgerFile, name: Name = None, page: Page = None, force: Force = False) -> Output:
    """Show the releases of a ledger, and the budget spent and left."""
    return budget(file, WantedBudget(), name, page, force)


def set_budget(file: LedgerFile, wanted: WantedBudget, name: Name = None, force: Force = False) -> Output:
    """Set the budget of a dataset, and show the ledger."""
    return budget(file, wanted if wanted.stated else replace(wanted, reason=""), name, None, force)


def budget(
    file: LedgerFile, wanted: WantedBudget, name: Name = None, page: Page = None, force: Force = False
) -> Output:
    """Show the releases of a ledger, and the budget spent and left. With --epsilon, set a budget first."""
    from discreet.cli.output.ledger import PAGE, ledger_tables, write_ledger_page

    name = checked_name(name)
    if page is not None:
        lib.refuse_page(page, kind=PAGE, force=force, inputs=[file])
    if wanted.epsilon is not None:
        if name is None:
            raise OptionNeeds(options=("--epsilon",), needs="--name", why="each budget is for one dataset")
        _set_budget(file, name, wanted.epsilon, wanted)
    elif wanted.stated:
        raise OptionNeeds(
            options=("--delta", "--for", "--reason", "--account", "--renews", "--start-anew"),
            needs="--epsilon",
            why="they set a budget",
        )
    if not file.exists():
        raise LedgerMissing(path=file)
    with lib.Ledger.open(file, read_only=True) as book:
        if name is not None and name not in book.datasets():
            raise DatasetNotInLedger(path=file, name=name, known=tuple(book.datasets()))
        if page is not None:
            write_ledger_page(book, name, page, force=force)
        tables = ledger_tables(book, name)
        return Output(lib.report_json(book, name), tables, *([f"Written to {page}."] if page else []))


def _rules(account: str | None, renews: str | None, renewed: str | None) -> dict[str, Any]:
    """Return the given rules of a budget other than its size."""
    rules: dict[str, Any] = {}
    if account is not None:
        one_of("--account", account, [kind.value for kind in lib.Account])
        rules["account"] = lib.Account(account)
    if renews is not None:
        one_of("--renews", renews, [period.value for period in lib.Period])
        rules["renews"] = lib.Period(renews)
    if renewed is not None:
        if not renewed.strip():
            raise OptionEmpty(option="--start-anew")
        rules["renewed"] = renewed
    return rules


def _set_budget(file: Path, name: str, epsilon: float, wanted: WantedBudget) -> None:
    """Set a budget with the privacy definition of a model, else as `Ledger.set_budget` chooses it."""
    promise = None if wanted.model is None else _promise_of(wanted.model, epsilon, wanted.delta)
    size: dict[str, Any] = {"epsilon": epsilon, "delta": wanted.delta} if promise is None else {}
    rules = _rules(wanted.account, wanted.renews, wanted.renewed)
    with lib.Ledger.open(file) as book:
        book.set_budget(name, promise, reason=wanted.reason or "", **size, **rules)
        spent = book.balance(name)
        if spent is not None and spent.share > 1:
            remark(
                f"discreet: {name!r} has already spent more than this budget, so further releases are "
                "rejected."
            )
        _remark_on_few(book, name)


def _remark_on_few(book: lib.Ledger, name: str) -> None:
    """Warn of a budget that adds deltas and covers at most one release with the delta of usual fits."""
    budget, balance = book.budget(name), book.balance(name)
    if budget is None or balance is None or budget.account is not lib.Account.ADDING:
        return
    limit, spent = budget.guarantee, balance.spent.delta
    if (
        limit.trust is lib.Trust.LOCAL
        or not limit.delta
        or spent + 2 * lib.FIT_DELTA <= limit.delta * (1 + 1e-12)
    ):
        return
    enough = "is enough for one more release" if balance.fits_usual else "isn't enough for a release"
    account = "" if book.entries(name) else " with --account gaussian, whose releases share one delta, or"
    larger = f"--delta {lib.number_above(spent + 10 * lib.FIT_DELTA)} --reason REASON"
    remark(
        f"discreet: the account of {name!r} adds deltas, and delta={limit.delta:g} {enough} "
        f"with the usual delta {lib.FIT_DELTA:g}, at any epsilon. For more, set the budget again{account} "
        f"with a larger delta: {larger} is enough for ten."
    )


def _promise_of(model: str, epsilon: float, delta: float | None) -> lib.Guarantee:
    if lib.is_never_private(model):
        raise NoPrivacyBudget(model=model)
    unit, neighbors, trust = lib.example_promise(model).definition
    return lib.Guarantee(
        epsilon=epsilon,
        delta=lib.USUAL_DELTA if delta is None else delta,
        unit=unit,
        neighbors=neighbors,
        trust=trust,
        basis=lib.Basis.PROVED,
    )


def plan(
    *,
    people: int | None = None,
    epsilon: AnyEpsilon = None,
    delta: float = 1e-6,
    releases: int = 1,
    items: int | None = None,
    ratings: Annotated[float | None, "--ratings-per-person"] = None,
    metric: str | None = None,
    purpose: Annotated[str | None, typer.Option("--for", metavar="lists|ratings")] = None,
    wanted: float | None = None,
    follow: bool = False,
    half_life: str | None = None,
    come_once: Annotated[bool, "--users-come-once"] = False,
) -> Output:
    """Plan releases: the cost of each, the attacker's gain, and the accuracy to expect.

    The plan uses only the numbers given here and measurements on public data.

    Options:
        people: The approximate number of users.
        epsilon: The budget for all releases together.
        delta: The budget's delta.
        releases: The number of releases: 12 for monthly, 52 for weekly.
        items: The approximate number of items: noise is added to each.
        ratings: The approximate number of ratings or clicks per user, to find similar public data.
        metric: The measure of accuracy: rmse or hr@10. Default: rmse.
        purpose: What the model is for: lists (measured by hr@10) or ratings (rmse).
        wanted: Find the smallest epsilon that reaches this accuracy.
        follow: Compare one fit, refits and `discreet follow` over a year.
        half_life: With --follow: half-life of an interaction's weight: 7d, 2w, 1m. Default: 30d.
        come_once: With --follow: most users rate only once a year.
    """
    # `follow` makes lists, unless the user asks for ratings.
    unasked = [_FOR_LISTS] if metric is None and purpose is None and wanted is None else []
    metric = _measure(metric, "lists" if follow and purpose is None and metric is None else purpose)
    if epsilon is None and wanted is None:
        raise OptionMissing(options=("--epsilon", "--wanted"))
    if follow and wanted is not None:
        raise OptionsConflict(
            options=("--follow", "--wanted"), why="--follow compares schedules at one budget"
        )
    if not follow and (half_life is not None or come_once):
        raise OptionNeeds(
            options=("--half-life", "--users-come-once"),
            needs="--follow",
            why="they describe a continual release",
        )
    data = _Data(people=people, items=items, ratings=ratings, metric=metric)
    if follow:
        return _compare(epsilon, delta, releases, half_life or "30d", data, come_once=come_once)
    if wanted is not None and people is None:
        raise OptionNeeds(options=("--wanted",), needs="--people", why="noise matters less with more users")
    found = _planned(epsilon, delta, releases, wanted, data)
    return Output(found, lambda: _show(found, data), *unasked)


_FOR_LISTS = (
    "This plan is for predicted ratings. For lists, such as from clicks or purchases, pass --for lists: the "
    "expected accuracy and the commands differ."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """Known facts about the data that the plan is for."""

    people: int | None
    items: int | None
    ratings: float | None
    metric: str

    def expected(self, epsilon: float) -> lib.ExpectedAccuracy | None:
        """Return the accuracy that such a release kept on public data, if the number of users is known."""
        if self.people is None:
            return None
        return lib.expected(
            self.metric, epsilon, self.people, items=self.items, ratings_per_person=self.ratings
        )


def _measure(metric: str | None, purpose: str | None) -> str:
    """Return the measure of accuracy: the requested one, or the measure for the model's purpose."""
    measures = {"lists": "hr@10", "ratings": "rmse"}
    if purpose is None:
        return metric or "rmse"
    one_of("--for", purpose, measures)
    if metric not in (None, measures[purpose]):
        raise OptionsConflict(
            options=(f"--for {purpose}", "--metric"),
            why=f"--for {purpose} is measured by {measures[purpose]}",
        )
    return measures[purpose]


def _compare(
    epsilon: float | None, delta: float, releases: int, half_life: str, data: _Data, *, come_once: bool
) -> Output:
    """Return the ways to spend a year's budget on current popularity, and the commands that compare them."""
    from discreet.cli.follow import days

    if epsilon is None:
        raise OptionNeeds(
            options=("--follow",), needs="--epsilon", why="--follow compares ways to spend a budget"
        )
    settings = lib.FollowSettings(
        # A single release isn't a year. Weekly is usual.
        releases=52 if releases == 1 else releases,
        epsilon=epsilon,
        delta=delta,
        half_life=days("--half-life", half_life),
    )
    each = 1.0 if data.ratings is None else positive_finite("--ratings-per-person", data.ratings)
    ways = lib.compared(settings, come_once=come_once, choices=each)
    choices = "few (--ratings-per-person)" if data.ratings is None else f"{each:g}"
    once = " --users-come-once" * come_once
    commands = _both(settings, f" --half-life {half_life}{once}", data, ways)
    rated = data.metric == "rmse"
    caution = lib.SAME_RATINGS if rated else lib.SAME_LISTS
    said = {"verdict": lib.verdict(ways, rated=rated), "caution": caution, "commands": commands}
    return Output(
        {"follow": [way.to_json() for way in ways], **said},
        lambda: _ways_table(ways),
        "Noise: standard deviation on an item's count. Freshness: the average part of current interactions "
        "that the latest release contains. Signal: the weight of recent interactions in it. Users needed: "
        f"how many must have chosen an item recently, each among {choices}, before it is three standard "
        "deviations above the noise. Lower is better.",
        f"{lib.verdict(ways, rated=rated)} {_few(ways, data)}{caution}",
        lambda: _show_commands(ways, commands),
    )


def _show_commands(ways: list[lib.Way], commands: list[str]) -> None:
    write("Try all of them on a past year of your own data, and decide by the result (don't publish it):")
    write(commands[0])
    for heading, lines in _in_order(ways, commands):
        show(heading)
        write("\n".join(lines))


def _few(ways: list[lib.Way], data: _Data) -> str:
    """Return a warning if one item needs more users than there are."""
    needed = min(way.people_needed for way in ways)
    if data.people is None or needed <= data.people / 10:
        return ""
    there = f"There are about {data.people:,} in all, so "
    return there + (
        "no item can be seen. " if needed > data.people else "only the most popular items can be seen. "
    )


def _in_order(ways: list[lib.Way], commands: list[str]) -> list[tuple[str, list[str]]]:
    """Return the commands of each way under a heading. Following or refits are first, whichever is better."""
    follow, refit = _best(ways, followed=True), _best(ways, followed=False)
    both = [("To follow:", commands[1:3]), (f"For {refit.name}:", commands[3:5])]
    both = both if follow.people_needed <= refit.people_needed else both[::-1]
    return [*both, ("For users' preferences, one fit:", commands[5:])]


def _best(ways: list[lib.Way], *, followed: bool) -> lib.Way:
    return min(
        (way for way in ways if (way.epsilon_each is None) == followed), key=lambda way: way.people_needed
    )


def _ways_table(ways: list[lib.Way]) -> lib.Table:
    rows = []
    for way in ways:
        each = "once" if way.epsilon_each is None else f"{way.epsilon_each:.3g}"
        numbers = (f"{number:.3g}" for number in (way.noise, way.freshness, way.signal))
        rows.append((way.name, str(way.releases), each, *numbers, f"{way.people_needed:,.0f}"))
    head = ("way", "releases", "epsilon each", "noise", "freshness", "signal", "users needed")
    return table_of(head, rows, right=1)


def _both(settings: lib.FollowSettings, more: str, data: _Data, ways: list[lib.Way]) -> list[str]:
    """Return the commands that replay a year, follow it, refit, and fit preferences."""
    lists = data.metric == "hr@10"
    what = "clicks.csv --implicit" if lists else "ratings.csv"
    known = "" if data.people is None else f" --people {data.people}"
    scale, delta = "" if lists else " --scale 1,5,1", f"--delta {settings.delta:g}"
    account = account_for("mine")
    level, paid = f"--epsilon {settings.epsilon:g} {delta}", account.options
    follow, refit = _best(ways, followed=True), _best(ways, followed=False)
    year = f"--releases {follow.releases}{more} {level}"
    simple = f"--model popularity --set half_life={settings.half_life:g}" if lists else "--model biases"
    fit = f"  discreet fit {what}{scale}"
    rest = f"{delta}{known} {paid} --out mine.discreet"
    once = _rounded_down(ways[0].epsilon_each or settings.epsilon)
    return [
        f"  discreet follow replay {what}{scale} {year}",
        f"  discreet follow start mine.follow --items items.csv{scale} {year} {paid}",
        "  discreet follow add mine.follow new.csv --out mine.discreet   # each time, with what is new",
        f"  discreet budget set {account.place} {level} --account gaussian{_renewal(follow.releases)}",
        f"{fit} {simple} --epsilon {_rounded_down(refit.epsilon_each or settings.epsilon)} {rest} --force",
        f"{fit}{'' if lists else ' --for ratings'} --epsilon {once} {rest}",
    ]


def _rounded_down(epsilon: float) -> str:
    """Return an epsilon with four digits that lets all releases fit into the budget."""
    with localcontext(prec=4, rounding=ROUND_FLOOR):
        return f"{float(+Decimal(epsilon)):g}"


def _planned(
    epsilon: float | None, delta: float, releases: int, wanted: float | None, data: _Data
) -> dict[str, Any]:
    return lib.plan(
        epsilon,
        delta=delta,
        releases=releases,
        people=data.people,
        items=data.items,
        ratings_per_person=data.ratings,
        metric=data.metric,
        wanted=wanted,
    ).to_json()


def _show(found: dict[str, Any], data: _Data) -> None:
    from discreet.cli.follow import releases_of

    if "wanted" in found:
        asked = found["wanted"]
        price = f"epsilon = {asked['epsilon']:.3g} per release (as on {asked['from']})"
        show(f"{data.metric} = {asked['value']:g} needs {price}.")
    each, adding = found["per_release"], found["adding"]
    attacker = found["attacker"]
    who, after_all = "it", ""
    if found["releases"] > 1:
        who, after_all = "each", f" and {lib.percent(attacker['all'])} after all of them"
    show(
        f"{releases_of(found['releases'])} under epsilon = {found['limit']['epsilon']:g}, delta = "
        f"{found['limit']['delta']:g}: {who} may spend epsilon = {lib.number_below(each['epsilon'])} at "
        f"delta = {each['delta']:g} in a Gaussian account, or epsilon = "
        f"{lib.number_below(adding['epsilon'], 3)} at delta = {lib.number_below(adding['delta'], 2)} "
        "in an account that adds epsilons.",
        "An attacker who knows everything except whether one user is in the data guesses right at most "
        f"{lib.percent(attacker['one'])} of the time after one release{after_all}. A random guess is "
        "right 50% of the time. The label of a release states "
        f"{lib.percent(lib.posterior(each['epsilon'], each['delta']))}, because it assumes the worst noise "
        "with this epsilon and delta. Gaussian noise protects better.",
    )
    if data.people is None:
        show("The expected accuracy depends on the number of users. Pass --people.")
    else:
        _show_expected(found, data)
    write("\n".join(["To follow the plan, with your own names:", *_commands(found, data)]))
    if _renewal(found["releases"]):
        show(
            "With --renews yearly, the budget limits any 12 months, and labels state that. Without it, the "
            "budget is for all time."
        )


def _show_expected(found: dict[str, Any], data: _Data) -> None:
    """Print the accuracy under this noise on public data, and what it is worth."""
    expected = data.expected(found["per_release"]["epsilon"])
    assert expected is not None
    rows = []
    for curve, value in expected.measured:
        sizes = (f"{curve.people:,}", f"{curve.items:,}", f"{curve.ratings_per_person:.0f}")
        rows.append((curve.dataset, *sizes, *(f"{number:.4g}" for number in (curve.floor, value, curve.bar))))
    head = ("public data", "users", "items", "rows per user", "simple", "plan", "no noise")
    better = f"{data.metric} ({lib.PLAN_METRICS[data.metric]} is better)"
    title = f"{better} on public data with as much noise per item"
    table = table_of(head, rows, title=title, right=1)
    missing = [
        name
        for name, given in (("--items", data.items), ("--ratings-per-person", data.ratings))
        if given is None
    ]
    narrower = f" To select more similar public data, pass {' and '.join(missing)}." if missing else ""
    show(
        table,
        f"Simple: {lib.SIMPLEST[data.metric]}, without noise. Plan: a release of this plan. "
        f"{_worth(expected, found['per_release']['epsilon'])}{narrower}",
    )
    if data.items is not None:
        show(_how_many(found["per_release"]["epsilon"], data))
    if found["releases"] >= _MANY:
        _show_fewer(found, data)


def _worth(expected: lib.ExpectedAccuracy, epsilon: float) -> str:
    """Return in words how much of the gain without privacy is kept, and when to measure it instead."""
    low, high = (round(100 * share) for share in expected.shares)
    simplest = lib.SIMPLEST[expected.metric]
    nearest, value = expected.measured[0]
    kept = round(100 * min(max(nearest.share(value), 0.0), 1.0))
    said = (
        f"On {nearest.dataset}, the most similar of these data, the plan keeps {kept}% of what a model "
        f"without privacy gains over {simplest}. In 9 of 10 cases, the share on other data differs by at "
        f"most {round(100 * lib.MARGIN)} points."
    )
    if low < _LITTLE < high:
        said += f" So on your data, the plan may be hardly better than {simplest}."
    elif high <= _LITTLE:
        said += f" So expect hardly more than {simplest}: plan fewer releases, or a larger epsilon."
    return f"{said} To measure your own data, run `discreet try FILE --epsilon {_rounded_down(epsilon)}`."


def _how_many(epsilon: float, data: _Data) -> str:
    """Return how many users such a release needs, and whether these are enough."""
    assert data.items is not None and data.people is not None
    needed = lib.users_needed(
        "lists" if data.metric == "hr@10" else "ratings", epsilon=epsilon, items=data.items
    )
    verdict = {
        "yes": f"{data.people:,} users are enough",
        "no": f"{data.people:,} users are too few",
        "undecided": f"For {data.people:,} users, public data can't tell",
    }[needed.answer(data.people)]
    return (
        f"{verdict}. With {data.items:,} items at epsilon {epsilon:.3g}, a private model was better than "
        f"{lib.SIMPLEST[data.metric]} on public data with {needed.most:,} users or more, and never with "
        f"fewer than {needed.least:,}."
    )


# From this many releases on, a plan shows what a third of them would allow.
_MANY = 3
# A gain below this many percent is small.
_LITTLE = 15


def _show_fewer(found: dict[str, Any], data: _Data) -> None:
    limit, fewer = found["limit"], found["releases"] // 3
    each = lib.schedule(limit["epsilon"], limit["delta"], fewer).per_release.epsilon
    expected = data.expected(each)
    assert expected is not None
    nearest, value = expected.measured[0]
    kept = round(100 * min(max(nearest.share(value), 0.0), 1.0))
    show(f"With --releases {fewer}, each may have epsilon = {lib.number_below(each)} and keeps {kept}%.")


def _renewal(releases: int) -> str:
    """Return the option of a budget for one year, if there are as many releases as months, weeks or days."""
    return " --renews yearly" if releases in (12, 52, 365) else ""


def _commands(found: dict[str, Any], data: _Data) -> list[str]:
    """Return the commands that follow the plan, with its numbers."""
    limit, each = found["limit"], found["per_release"]
    epsilon = _rounded_down(each["epsilon"])
    known = "" if data.people is None else f" --people {data.people}"
    lists = data.metric == "hr@10"
    what, purpose = ("clicks.csv --implicit", "") if lists else ("ratings.csv", " --for ratings")
    level = f"--epsilon {epsilon} --delta {each['delta']:g}{known}"
    account = account_for("mine")
    renewal = _renewal(found["releases"])
    budget = f"--epsilon {limit['epsilon']:g} --delta {limit['delta']:g} --account gaussian{renewal}"
    return [
        f"  discreet evaluate {what}{purpose} {level}   # not to be published",
        f"  discreet budget set {account.place} {budget}",
        f"  discreet fit {what}{purpose} {level} {account.options} --out mine.discreet",
        *[f"  discreet refit mine.discreet {what.split()[0]} {account.options} --out next.discreet   # later"]
        * (found["releases"] > 1),
    ]
