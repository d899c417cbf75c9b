"""Release private scores, for `evaluate --private`, `compare --private` and their `--dry-run`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.errors import OptionDoesNotApply, OptionNeeds
from discreet.cli.options.declared import UNRECORDED
from discreet.cli.options.sources import opened
from discreet.cli.output.printing import emit, remark, remark_on_conditions, remark_on_delta, show
from discreet.cli.output.tables import saying_what_was_paid, show_price
from discreet.core.files import write_whole
from discreet.report.guarantee import condition_text

if TYPE_CHECKING:
    from discreet.cli.options.declared import Paying, Reading
    from discreet.cli.options.measuring import Measuring, Privately
    from discreet.data.facts import PublicFacts
    from discreet.evaluation.private.fit_and_score import Together
    from discreet.evaluation.private.release import PrivateScore
    from discreet.models.estimator import Estimator
    from discreet.privacy.guarantee import Guarantee


def measure_privately(
    estimators: Sequence[Estimator],
    data: str,
    measuring: Measuring,
    reading: Reading,
    privately: Privately,
    paying: Paying,
    on: str | None = None,
    *,
    as_json: bool,
) -> None:
    """Fit and score under one guarantee, or show the cost of doing that."""
    from discreet.core.progress import terminal_progress
    from discreet.evaluation.private.fit_and_score import fit_and_evaluate
    from discreet.privacy.ledger.book import Ledger

    paying.check()
    if not privately.private and not privately.dry_run:
        raise OptionNeeds(
            options=("--ledger", "--name", "--allow-unbudgeted"),
            needs="--private",
            why="they record what private scores cost",
        )
    if not privately.private:
        show("Without --private the scores cost no budget. They have no noise, so don't publish them.")
        return
    if unused := measuring.unused_privately:
        raise OptionDoesNotApply(
            options=tuple(unused),
            to="--private",
            why="private scores come from one run with real noise and one held-out item per user",
        )
    # The scores are on the disk before they are printed, so a repeated run after a kill prints the same
    # scores.
    out = None if paying.ledger is None or privately.dry_run else Path(f"{paying.ledger}.scores.json")
    with (
        terminal_progress(None) as report,
        opened(data, reading, paying.name, on, report) as source,
        paying.releasing(out, data, estimators, measuring, privately, reading) as release,
    ):
        if out is not None and release is not None and release.is_published:
            release.finish(Ledger.open(paying.ledger or out))
            remark("discreet: an earlier run of this command drew these scores. No budget was spent again.")
            emit(json.loads(out.read_text("utf-8")))
            return
        remark_on_delta(estimators, source.facts)
        book = paying.book(source.name, release)
        if privately.dry_run:
            show_price(estimators[0], source, book, as_json=as_json)
            if not as_json:
                metrics = measuring.metrics or _usual(estimators)
                show(_forecast(estimators, metrics, privately.share, source.facts))
            return
        with saying_what_was_paid(book, paying.ledger, made="score"):
            found = fit_and_evaluate(
                estimators,
                source,
                metrics=measuring.metrics or _usual(estimators),
                share=privately.share,
                ledger=book,
            )
        names = _names(estimators)
        content = {**_as_json(found, names), "name": source.name}
        if out is not None:
            write_whole(out, json.dumps(content).encode())
    remark_on_conditions(found.guarantee)
    if as_json:
        emit(content)
        return
    _show(found, names, recorded=paying.ledger is not None)
    if paid := paying.paid(source.name):
        show(paid)


def _forecast(estimators: Sequence[Estimator], metrics: list[str], share: float, facts: PublicFacts) -> str:
    """Return how much noise scores would have, before any budget is spent."""
    from discreet.evaluation.private.fit_and_score import expected_noise

    found = expected_noise(estimators, metrics, share=share, facts=facts)
    if found is None:
        return "Pass --people to show how much noise the scores would have."
    said = ", ".join(f"± {1.96 * noise:.2g} on {name}" for name, noise in found.items())
    return (
        f"With {facts.n_users:,} users the noise would be about {said}, with 95% confidence. A --share "
        f"larger than {share:g} makes it smaller, and the model slightly worse."
    )


def _usual(estimators: Sequence[Estimator]) -> list[str]:
    """Return the default metric: only one, because every further metric adds noise to all."""
    return ["rmse"] if all(one.predicts_ratings for one in estimators) else ["hr@10"]


def _names(estimators: Sequence[Estimator]) -> list[str]:
    """Return the name of each. Variants of one model also have their settings."""
    names = [one.name for one in estimators]
    return [one.name if names.count(one.name) == 1 else one.named for one in estimators]


def _as_json(found: Together, names: list[str]) -> dict[str, object]:
    scores = {
        metric: {name: one.to_json() for name, one in zip(names, values, strict=True)}
        for metric, values in found.scores.items()
    }
    proof = {} if found.certificate is None else {"certificate": found.certificate}
    best = _best(found, names)
    return {"scores": scores, "best": best, "guarantee": found.guarantee.to_json(), **proof}


def _best(found: Together, names: list[str]) -> dict[str, str]:
    from discreet.evaluation.private.release import best_of

    return {metric: best_of(dict(zip(names, values, strict=True))) for metric, values in found.scores.items()}


def _show(found: Together, names: list[str], *, recorded: bool) -> None:
    from rich.table import Table

    table = Table("metric", "model", "score", "95 % interval", "noise alone")
    for metric, values in found.scores.items():
        for name, one in zip(names, values, strict=True):
            table.add_row(
                metric,
                name,
                f"{one.value:.4f}",
                f"{one.low:.4f} to {one.high:.4f}",
                f"± {1.96 * one.noise:.4f}",
            )
    show(table)
    best = _best(found, names)
    for metric, values in found.scores.items():
        show(_verdict(metric, values, best[metric]))
    show(
        f"Models and scores together: {found.guarantee.short()}",
        f"These scores {_may(found.guarantee)}. One item of each user was held out for them.",
    )
    if not recorded and found.guarantee.is_private:
        show(UNRECORDED)


def _may(promise: Guarantee) -> str:
    """Return whether scores may be published."""
    if not promise.is_private:
        return "are not private: do not publish them"
    condition = condition_text(promise.conditions)
    only = f" only if {condition}" if condition else ""
    return f"may be published{only}"


# Noise beyond this share of a score hides what models usually differ by.
_LARGE = 0.1


def _verdict(metric: str, values: Sequence[PrivateScore], best: str) -> str:
    """Return which model is best, or that the noise is larger than any difference."""
    noise = 1.96 * max(one.noise for one in values)
    if len(values) == 1:
        if noise <= _LARGE * abs(values[0].value):
            return f"The noise on {metric} is ± {noise:.2g} with 95% confidence."
        return (
            f"The noise on {metric} is ± {noise:.2g}, more than a tenth of the score: it is too large to "
            "judge a model by. More users, a larger --share, or a larger epsilon would help."
        )
    apart = max(one.value for one in values) - min(one.value for one in values)
    # Noise of a difference.
    noise *= math.sqrt(2)
    if apart > noise:
        return f"Best by {metric}: {best}."
    return (
        f"{metric} can't separate these models: the noise on a difference, ± {noise:.2g}, is larger "
        f"than any difference (at most {apart:.2g})."
    )
