"""State in a sentence what privacy costs: the best private score by epsilon against the best without it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from discreet.evaluation.comparison import shown_names
from discreet.evaluation.metrics import ListMetric, Metric, RatingMetric
from discreet.evaluation.references import PREFIX
from discreet.evaluation.results import Evaluation, Score
from discreet.privacy.guarantee import Neighbors, Trust, Unit

Definition = tuple[Unit, Neighbors, Trust]
#: What is protected, within a sentence.
PROTECTED = {Unit.VALUE: "a rating value", Unit.RATING: "a rating", Unit.USER: "a whole user"}
# A sentence names the costs at so many epsilons: the ends, and what lies between.
_MOST = 3
# A score ahead of all without privacy isn't a gain from privacy, so no share of it is stated.
_NO_WORSE = "no worse"


def promises(one: Evaluation) -> bool:
    """Return whether a fit has a guarantee."""
    return math.isfinite(one.guarantee.epsilon)


def of_definition(found: Sequence[Evaluation], definition: Definition | None) -> list[Evaluation]:
    """Return the evaluations with this privacy definition; with None, all."""
    return [one for one in found if definition is None or one.guarantee.definition == definition]


def cost_of_privacy(found: Sequence[Evaluation], metric: str) -> list[str]:
    """Return what privacy costs in this metric: a sentence per privacy definition, then the baseline."""
    named = [
        (one, name) for one, name in zip(found, shown_names(found), strict=True) if metric in one.metrics
    ]
    sign = 1 if Metric.parse(metric).lower_is_better else -1
    free = [(one.metrics[metric], name) for one, name in named if not promises(one)]
    best_free = min(free, key=lambda pair: sign * pair[0].mean, default=None)
    definitions = dict.fromkeys(one.guarantee.definition for one, _ in named if promises(one))
    sentences = [_sentence(named, metric, sign, definition, best_free) for definition in definitions]
    if best_free is None:
        sentences.append("No model without privacy was measured (epsilon inf), so the cost is not known.")
    private = [one.metrics[metric] for one, _ in named if promises(one)]
    if best_free is not None and any(_cost(score, best_free[0], sign) == _NO_WORSE for score in private):
        sentences.append(
            "Noise does not improve a model: where a private fit is ahead, that is chance, or a better model "
            "without privacy was not measured."
        )
    return [*sentences, *_against_baselines(found, private, metric, sign)]


def ran_once(found: Sequence[Evaluation]) -> str:
    """Return a warning if every model ran once; empty otherwise."""
    once = all(len(score.values) == 1 for one in found for score in one.metrics.values())
    return "Every model ran once, so small differences may be luck; --repeat 3 shows the spread." * once


def _sentence(
    named: Sequence[tuple[Evaluation, str]],
    metric: str,
    sign: int,
    definition: Definition,
    best_free: tuple[Score, str] | None,
) -> str:
    mine = [(one, name) for one, name in named if promises(one) and one.guarantee.definition == definition]
    parts = []
    for epsilon in _some(sorted({one.guarantee.epsilon for one, _ in mine})):
        here = ((one.metrics[metric], name) for one, name in mine if one.guarantee.epsilon == epsilon)
        score, name = min(here, key=lambda pair: sign * pair[0].mean)
        cost = "" if best_free is None else f", {_cost(score, best_free[0], sign)}"
        parts.append(f"{score.mean:.4g} at epsilon {epsilon:g} ({name}{cost})")
    reached = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    against = (
        "" if best_free is None else f", against {best_free[0].mean:.4g} without privacy ({best_free[1]})"
    )
    return f"With {PROTECTED[definition[0]]} protected, the best model reaches {reached}{against}."


def _some(epsilons: list[float]) -> list[float]:
    """Return at most a few of them, evenly chosen, with the first and the last."""
    if len(epsilons) <= _MOST:
        return epsilons
    return [epsilons[round(place * (len(epsilons) - 1) / (_MOST - 1))] for place in range(_MOST)]


def _cost(score: Score, free: Score, sign: int) -> str:
    """Return how much worse a score is, as a share of the score without privacy, or that it is not worse."""
    worse = sign * (score.mean - free.mean)
    if len(score.values) == len(free.values) > 1:
        # The runs share their splits, so that their differences count.
        differences = np.subtract(score.values, free.values)
        if abs(worse) <= float(np.std(differences, ddof=1)):
            return "no difference beyond the spread of the runs"
    share = 100 * abs(worse / free.mean) if free.mean else math.inf
    if not worse or share < 0.05:
        return "as good"
    if worse <= 0:
        return _NO_WORSE
    if not free.mean:
        return f"{worse:.3g} worse"
    # Two digits, and never as a power of ten.
    return f"{f'{share:.2g}' if share < 99.5 else f'{share:,.0f}'}% worse"


def _against_baselines(
    found: Sequence[Evaluation], private: Sequence[Score], metric: str, sign: int
) -> Iterator[str]:
    # Chance is as diverse as can be: where held-out items do not count, baselines say nothing.
    if not isinstance(Metric.parse(metric).definition, ListMetric | RatingMetric):
        return
    scores = [
        (scores[metric].mean, name.removeprefix(PREFIX))
        for one in found
        for name, scores in one.references.items()
        if metric in scores
    ]
    if not scores:
        return
    value, name = min(scores, key=lambda pair: sign * pair[0])
    behind = sum(sign * (score.mean - value) >= 0 for score in private)
    said = f"The best simple baseline ({name}) reaches {value:.4g}"
    if behind == len(private) > 0:
        yield f"{said}; no private model is better."
    elif behind:
        yield f"{said}; {behind} of {len(private)} private fits {'is' if behind == 1 else 'are'} not better."
    else:
        yield f"{said}."
