"""The words of a label's notes: what a reader should know in addition to the guarantee and its assumptions.

No code reads a note. What decides something is a field or an assumption.
"""

from __future__ import annotations

from discreet.report.numbers import number_above

#: On scores of an evaluation without privacy.
SCORES_NOT_COVERED = (
    "the scores are computed from held-out ratings without noise, and the guarantee doesn't cover them"
)
#: On the model of a federation.
WEAKEST_PARTY = "this is the weakest guarantee of all parties, and each party has its own ledger"
#: On continual releases over several years.
SEVERAL_YEARS = (
    "a user who is active in Y such years spends Y times as much (sqrt(Y) times in a Gaussian account)"
)
#: On objective perturbation with the probit link.
PROBIT_OBJECTIVE = "the noise of a probit objective doesn't hide ratings, whatever epsilon it was drawn for"
#: On models that release as a paper prints, where the printed guarantee is refuted.
PRINTED_OBJECTIVE = (
    "NOT PRIVATE as printed: the proof omits the Jacobian, and at epsilon 1 238 of 240 ratings were "
    "recovered with the probit link"
)
PRINTED_OUTPUT = (
    "NOT PRIVATE as printed: epsilon is that of one entry, and the whole matrix is released; one rating can "
    "move every entry"
)
PRINTED_DPIMF = (
    "NOT PRIVATE as printed: one user is in every item's problem, profiles are trained on the same rows "
    "without noise, and the noise is scaled to the longest actual profile"
)
PRINTED_DPMF = "NOT PRIVATE as printed: profiles are trained on the same rows without noise"
PRINTED_WEIGHTS = "the noise is for a sum without the sampling weights, which the released sum has"
TRAINED_WITHOUT_NOISE = "trained without noise"


def continual_release(number: int, of: int, until: str | None) -> str:
    """Return which of how many continual releases a model is from, and the last day of all of them."""
    end = "" if until is None else f", and the last day is {until}"
    return f"release {number:,} of {of:,}{end}"


def many_releases(releases: int, days: float) -> str:
    """Return how many releases one cost covers."""
    return f"the cost covers up to {releases:,} releases in {days:g} days together"


def user_with_ratings(ratings: int, epsilon: float) -> str:
    """Return the epsilon of all ratings of a user, if the guarantee is about one rating."""
    return f"for a user with {ratings:,} ratings, all of them together: epsilon = {number_above(epsilon)}"


def user_who_answers(items: int, epsilon: float) -> str:
    """Return the epsilon of all answers of a user whose device answers for unrated items as well."""
    return f"for a user who answers for {items:,} items: epsilon = {number_above(epsilon)}"


def selection_cost(fact: str, epsilon: float, delta: float, proof: str) -> str:
    """Return the part of the cost that selecting a fact with noise had."""
    cost = f"epsilon={number_above(epsilon)}" + (f", delta={number_above(delta)}" if delta else "")
    return f"of this, selecting the {fact} cost {cost} ({proof})"


def answered_entries(epsilon: float, entries: int) -> str:
    """Return the cost of each answered entry of a matrix that isn't released."""
    return (
        f"each answered entry costs epsilon = {number_above(epsilon)}, and the budget covers {entries:,}. "
        "The matrix as a whole is neither protected nor released"
    )
