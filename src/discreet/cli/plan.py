"""`discreet plan`: plan a budget over many releases before anything is spent."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal, localcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.options.declared import AsJson
from discreet.cli.options.parsing import parse_number
from discreet.cli.output.printing import emit, show, write
from discreet.core.checks import ParameterError, one_of


def plan(
    people: Annotated[int | None, typer.Option("--people", help="The approximate number of people.")] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon", help="The budget for all releases together.", parser=parse_number, metavar="FLOAT"
        ),
    ] = None,
    delta: Annotated[float, typer.Option("--delta", help="The budget's delta.")] = 1e-5,
    releases: Annotated[
        int, typer.Option("--releases", help="The number of releases: 12 for monthly, 52 for weekly.")
    ] = 1,
    ratings: Annotated[
        float, typer.Option("--ratings-per-person", help="The approximate number of ratings per person.")
    ] = 50.0,
    metric: Annotated[
        str | None,
        typer.Option("--metric", help="The measure of accuracy: rmse or hr@10. Default: rmse."),
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="What the model is for: lists (measured by hr@10) or ratings (rmse).",
            metavar="lists|ratings",
        ),
    ] = None,
    wanted: Annotated[
        float | None,
        typer.Option("--wanted", help="Find the smallest epsilon that reaches this accuracy."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--out", help="Also draw the curve to this .svg or .png file.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Compare one fit, refits and `discreet follow` over a year.")
    ] = False,
    half_life: Annotated[
        str,
        typer.Option("--half-life", help="With --follow: when a choice counts half: 7d, 2w, 1m (30 days)."),
    ] = "30d",
    come_once: Annotated[
        bool,
        typer.Option("--users-come-once", help="With --follow: most users rate only once a year."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Plan releases: what each may cost, what an attacker gains, and what accuracy to expect.

    The plan uses only the numbers given here and measurements on public data.
    """
    metric = _measure(metric, purpose)
    if epsilon is None and wanted is None:
        raise ParameterError("A plan needs --epsilon, the budget, or --wanted, the accuracy to reach.")
    if wanted is not None and people is None:
        raise ParameterError("--wanted needs --people, because noise matters less with more people.")
    if follow:
        _compare(epsilon, delta, releases, half_life, come_once=come_once, as_json=as_json)
        return
    found: dict[str, Any] = {}
    if wanted is not None and people is not None:
        found["wanted"] = _smallest(metric, wanted, people, ratings)
        if epsilon is None:
            epsilon = found["wanted"]["epsilon"]
    if epsilon is not None:
        found |= _schedule(epsilon, delta, releases, people, ratings, metric)
    if picture is not None:
        if people is None:
            raise ParameterError("--out draws accuracy, which needs --people.")
        _draw(picture, metric, people, ratings, found)
    if as_json:
        emit(found)
    else:
        _show(found, metric, people, ratings)


def _measure(metric: str | None, purpose: str | None) -> str:
    """Return the measure of accuracy: the one asked for, or that of what the model is for."""
    measures = {"lists": "hr@10", "ratings": "rmse"}
    if purpose is None:
        return metric or "rmse"
    one_of("--for", purpose, measures)
    if metric not in (None, measures[purpose]):
        raise ParameterError(
            f"--for {purpose} is measured by {measures[purpose]}. Leave out --metric or --for."
        )
    return measures[purpose]


def _compare(
    epsilon: float | None, delta: float, releases: int, half_life: str, *, come_once: bool, as_json: bool
) -> None:
    """Print the ways to spend a year's budget, best last."""
    from rich.table import Table

    from discreet.cli.options.years import days
    from discreet.follow import FollowSettings
    from discreet.follow.comparison import compared, verdict

    if epsilon is None:
        raise ParameterError("--follow compares ways to spend a budget. Give it with --epsilon.")
    settings = FollowSettings(
        # A single release is no year; weekly is usual.
        releases=52 if releases == 1 else releases,
        epsilon=epsilon,
        delta=delta,
        half_life=days("--half-life", half_life),
    )
    ways = compared(settings, come_once=come_once)
    if as_json:
        emit({"follow": [way.to_json() for way in ways], "verdict": verdict(ways)})
        return
    table = Table("way", "releases", "epsilon each", "noise", "fresh", "signal", "clearness")
    for way in ways:
        each = "paid once" if way.epsilon_each is None else f"{way.epsilon_each:.3g}"
        numbers = (way.noise, way.freshness, way.signal, way.clearness)
        table.add_row(way.name, str(way.releases), each, *(f"{number:.3g}" for number in numbers))
    show(table, verdict(ways))


def _schedule(
    epsilon: float, delta: float, releases: int, people: int | None, ratings: float, metric: str
) -> dict[str, Any]:
    from discreet.planning.plan import schedule, similar_curve

    found = schedule(epsilon, delta, releases).to_json()
    if people is not None:
        curve = similar_curve(metric, people, ratings)
        each = found["per_release"]["epsilon"]
        found["expected"] = {
            "metric": metric,
            "value": curve.at(each, people),
            "without_privacy": curve.bar,
            "without_learning": curve.floor,
            "from": curve.dataset,
        }
    return found


def _smallest(metric: str, wanted: float, people: int, ratings: float) -> dict[str, Any]:
    from discreet.planning.plan import similar_curve

    curve = similar_curve(metric, people, ratings)
    epsilon = curve.smallest_epsilon(wanted, people)
    if epsilon is None:
        raise ParameterError(
            f"{metric} = {wanted:g} was not reached on {curve.dataset} at any epsilon; the best was "
            f"{curve.points[-1][1]:g}. Ask for less, or for another metric."
        )
    return {"metric": metric, "value": wanted, "epsilon": epsilon, "from": curve.dataset}


def _draw(path: Path, metric: str, people: int, ratings: float, found: dict[str, Any]) -> None:
    from discreet.planning.drawing import draw_plan
    from discreet.planning.plan import similar_curve

    each = found["per_release"]["epsilon"] if "per_release" in found else None
    draw_plan(path, similar_curve(metric, people, ratings), people, each)


def _show(found: dict[str, Any], metric: str, people: int | None, ratings: float) -> None:
    from discreet.planning.drawing import draw
    from discreet.planning.plan import in_words, similar_curve

    if "wanted" in found:
        asked = found["wanted"]
        price = f"epsilon = {asked['epsilon']:.3g} per release (as on {asked['from']})"
        show(f"{metric} = {asked['value']:g} needs {price}.")
    if "per_release" in found:
        each, adding = found["per_release"], found["adding"]
        show(
            f"{found['releases']} releases under epsilon = {found['limit']['epsilon']:g}, delta = "
            f"{found['limit']['delta']:g}: each may have epsilon = {each['epsilon']:.4g} at delta = "
            f"{each['delta']:g} in a Gaussian account (by adding: {adding['epsilon']:.3g} at "
            f"{adding['delta']:.2g}).",
            "An attacker who knows all other data and asks whether one person is in the data is "
            f"{in_words(found['attacker']['one'])}, after one release, and "
            f"{in_words(found['attacker']['all'])}, after all of them.",
        )
    if people is not None:
        curve = similar_curve(metric, people, ratings)
        low, high = curve.reaches(people)
        points = [(low * (high / low) ** (step / 40), 0.0) for step in range(41)]
        marks = found["per_release"]["epsilon"] if "per_release" in found else None
        show(draw([(place, curve.at(place, people)) for place, _ in points], mark=marks))
        show(
            f"{metric} against epsilon of one release, for {people:,} people, estimated from {curve.dataset} "
            f"({curve.people:,} people, {curve.ratings_per_person:g} ratings each). Without privacy: "
            f"{curve.bar:g}; without learning: {curve.floor:g}."
        )
        if "expected" in found:
            show(f"Expect {metric} of about {found['expected']['value']:.3g} after each release.")
    if "per_release" in found:
        write("\n".join(["To follow the plan, with your own names:", *_commands(found, people, metric)]))


def _commands(found: dict[str, Any], people: int | None, metric: str) -> list[str]:
    """Return the commands that follow the plan, with its numbers."""
    limit, each = found["limit"], found["per_release"]
    # Rounded down, so that all releases fit into the budget.
    with localcontext(prec=4, rounding=ROUND_FLOOR):
        epsilon = f"{float(+Decimal(each['epsilon'])):g}"
    known = "" if people is None else f" --people {people}"
    what = "clicks.csv --implicit --duplicates last" if metric == "hr@10" else "ratings.csv"
    budget = f"--epsilon {limit['epsilon']:g} --delta {limit['delta']:g} --account gaussian"
    return [
        f"  discreet budget year.ledger --name shop {budget}",
        f"  discreet fit {what} --epsilon {epsilon} --delta {each['delta']:g}{known} --name shop "
        "--ledger year.ledger --out shop.discreet",
    ]
