"""Remarks and refusals that several verbs share: a large delta, conditions of a promise, missing ratings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.cli.output.printing import remark
from discreet.core.checks import ParameterError

if TYPE_CHECKING:
    from discreet.data.facts import PublicFacts
    from discreet.models.estimator import Estimator
    from discreet.privacy.guarantee import Guarantee

# The limit without a declared number of people: few datasets worth a model have less than a thousand.
_LARGE_DELTA = 1e-3


def remark_on_delta(estimators: Sequence[Estimator], facts: PublicFacts) -> None:
    """Warn of a delta so large that publishing one person's data outright would keep the promise.

    Only a declared number of people is used: counting them would be a query.
    """
    people = facts.n_users
    limit = _LARGE_DELTA if people is None else 1 / people
    largest = max((one.promise(facts).delta for one in estimators), default=0.0)
    if largest > limit:
        rule = f"{limit:g}" if people is None else f"1/{people:,} (one over the declared number of people)"
        remark(f"discreet: delta={largest:g} is above {rule}; such a promise may publish a person outright.")


def remark_on_conditions(promise: Guarantee) -> None:
    """Warn of a promise that holds only if facts taken from the data are public."""
    if promise.is_private and promise.conditions:
        were = "was" if len(promise.conditions) == 1 else "were"
        remark(
            f"discreet: {' and '.join(promise.conditions)} {were} taken from the data without noise; the "
            "promise holds only if that is public. Declare it (--items, --scale), or select it with noise "
            "(--private-catalog)."
        )


def refuse_without_ratings(estimators: Sequence[Estimator]) -> None:
    """Refuse models that need ratings, which `--implicit` ignores."""
    for estimator in estimators:
        if estimator.feedback == "explicit":
            raise ParameterError(
                f"{estimator.name} learns from ratings, which --implicit ignores. "
                "`discreet models` lists those that learn from implicit feedback."
            )
