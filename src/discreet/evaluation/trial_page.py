"""State a trial in ten lines for a terminal, and on a page with a chart."""

from __future__ import annotations

import json

from discreet.evaluation.trial import METRIC, Trial
from discreet.report.charts import Axis, ChartLine, Point, line_chart
from discreet.report.odds import Odds, percent
from discreet.report.pages import Html, details, element, page, table

#: What such a page is called in messages.
KIND = "trial"


def summary(found: Trial) -> list[str]:
    """Return the answer, what it rests on, and what would change it: a sentence or two per line."""
    asked, (best, value) = found.asked, found.best
    return [
        f"{found.users:,} users, {found.items:,} items, {found.rows:,} interactions. Held out: "
        f"{_held_out(found)}",
        "",
        *_headlines(found),
        f"Hit rate at 10: {asked.model:.4f} with the model, {asked.popularity:.4f} with private popularity. "
        f"Difference: {asked.gain.mean:+.4f} (95% interval {asked.gain.low:+.4f} to {asked.gain.high:+.4f}).",
        f"Without privacy, the best of {len(found.not_private)} models ({best}) reaches {value:.4f}.",
        *_ratings(found),
        _outlook(found),
        _meaning(found),
        "These scores have no noise. They are for you, the data owner: don't publish them. Nothing was "
        "released, and no budget was spent.",
    ]


def _headlines(found: Trial) -> list[str]:
    """Return the answer about recommendations and, if there are ratings, the answer about those."""
    level = f"at epsilon {found.asked.epsilon:g}"
    lists = {
        "yes": "a private model beats private popularity on your data.",
        "no": "private popularity beats the private model on your data.",
        "undecided": "a private model and private popularity are too close to call.",
    }
    ratings = {
        "yes": "a private model predicts ratings better than the simple private model `biases`.",
        "no": "the simple private model `biases` predicts ratings better than a private model with factors.",
        "undecided": "a private model and the simpler `biases` predict ratings about equally well.",
    }
    if found.ratings is None:
        return [f"{found.answer.upper()}: {level}, {lists[found.answer]}"]
    return [
        f"Recommendations: {found.answer.upper()}. {level.capitalize()}, {lists[found.answer]}",
        f"Ratings: {found.rated.upper()}. {level.capitalize()}, {ratings[found.rated]}",
    ]


def _held_out(found: Trial) -> str:
    what = {
        "leave-one-out": "one interaction per user, the latest if the file has times.",
        "time:0.1": "the latest tenth of all interactions.",
    }[found.split]
    some = "" if found.scored_users >= found.users else f" {found.scored_users:,} users were scored."
    return f"{what}{some}"


def _ratings(found: Trial) -> list[str]:
    if found.ratings is None:
        return []
    errors, gain = found.ratings, found.ratings.gain
    return [
        f"RMSE of ratings (lower is better): {errors.model:.4f} with the model, {errors.biases:.4f} with "
        f"`biases`. Gain: {gain.mean:+.4f} (95% interval {gain.low:+.4f} to {gain.high:+.4f})."
    ]


def _outlook(found: Trial) -> str:
    """Return which epsilon, or how many users, would turn the answer into a yes."""
    asked = found.asked
    if found.answer == "yes":
        kept = asked.gain.mean / max(found.best[1] - asked.popularity, 1e-9)
        return f"The model keeps {100 * min(kept, 1.0):.0f}% of what the best model gains over popularity."
    if found.needed_epsilon is not None:
        return (
            f"The model is better from epsilon {found.needed_epsilon:g} on. At epsilon {asked.epsilon:g} you "
            f"would need about {found.needed_users:,} users."
        )
    if len(found.levels) == 1:
        return "The model isn't better than popularity without noise either, so more users won't help."
    return (
        f"The model isn't clearly better up to epsilon {found.levels[-1].epsilon:g}. You would need more "
        f"than {found.levels[-1].epsilon / asked.epsilon:.0f} times as many users."
    )


def _meaning(found: Trial) -> str:
    odds = Odds.of(found.guarantee)
    return (
        f"Epsilon {found.asked.epsilon:g} means: an attacker who knows everything except {odds.secret} "
        f"guesses right at most {percent(odds.posterior)} of the time, where a coin is right 50% of the time."
    )


def render(found: Trial, name: str, command: str) -> str:
    """Return the trial as one page."""
    answers = _headlines(found)
    body = [
        element("h1", f"Trial of {name}"),
        *(element("p", line, "note") for line in answers),
        *(element("p", line) for line in summary(found) if line and line not in answers),
        element("h2", "Next command"),
        element("pre", command),
        element("h2", "Hit rate at 10 by model"),
        *([_chart(found)] if len(found.levels) > 1 else []),
        _scores(found),
        details("Everything as JSON", element("pre", json.dumps(found.to_json(), indent=1))),
    ]
    return page(f"Trial of {name}", body, kind=KIND)


def _scores(found: Trial) -> Html:
    rows = [
        [name, f"{one.epsilon:g}", f"{value:.4f}"]
        for one in found.levels
        for name, value in (("user-factorization", one.model), ("popularity", one.popularity))
    ]
    rows += [[name, "not private", f"{value:.4f}"] for name, value in found.not_private.items()]
    return table(["model", "epsilon", METRIC], rows, "Hit rates of all models", numbers={1, 2})


def _chart(found: Trial) -> Html:
    model = tuple(Point(one.epsilon, one.model) for one in found.levels)
    popularity = tuple(Point(one.epsilon, one.popularity) for one in found.levels)
    best, value = found.best
    return line_chart(
        [
            ChartLine(name="user-factorization", points=model),
            ChartLine(name="popularity", points=popularity, color=1),
            ChartLine(name=f"{best}, not private", level=value, color=2, dashes="5 4"),
        ],
        title="Hit rate at 10 by epsilon",
        x=Axis(label="epsilon", logarithmic=True, ticks=tuple((one.x, f"{one.x:g}") for one in model)),
        y=Axis(label=METRIC),
    )
