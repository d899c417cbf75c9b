"""The model we recommend: biases first, then as much structure as the noise allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

import numpy as np

from discreet.arrays import Floats
from discreet.checks import require
from discreet.contributions.crowd import Crowd
from discreet.data.facts import PublicFacts
from discreet.data.reading.item_table import read_item_table
from discreet.models.biases import FirstLook, first_look, release_effects, shrink_effects
from discreet.models.estimator import Estimator, check_budget, joint_promise
from discreet.models.progress import Progress
from discreet.models.scorers.factors import RatingScorer
from discreet.models.scorers.scorer import Scorer
from discreet.models.user_factorization.budget_split import plan
from discreet.models.user_factorization.choices import learn_clicks
from discreet.models.user_factorization.taste import (
    Taste,
    directions,
    free_directions,
    glance,
    public_directions,
    refit,
)
from discreet.privacy.accounting.gaussian import gaussian_multiplier, split_gaussian
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.randomness import PrivacyRandom

# Shares of the budget that are spent before the released numbers can say whether factors will pay.
_MEAN, _LOOK = 0.02, 0.12
# Factors pay if a glance at the second moment shows that they explain this part of the variance.
_EXPLAINED = 0.03


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UserFactorization(Estimator):
    """Factor ratings (or choices) with noise where it pays: items first, then taste as far as it shows.

    Guarantee
        (`epsilon`, `delta`) for a person's whole history, between data sets with and without that person,
        against everyone else (proofs/user_factorization.md, and for `feedback="implicit"`
        proofs/user_factorization_implicit.md). How the budget is shared, how many items take part and how
        many factors there are follow from `epsilon`, `delta` and released numbers only.

    Noise
        A person's vector in every sum has length at most 1, so release j adds N(0, (M / sqrt(s_j))^2) to each
        entry, with M the multiplier of one Gaussian release that is (`epsilon`, `delta`)-private and shares
        s_j that add up to 1.

    Parameters:
        feedback: "explicit" predicts ratings; "implicit" ranks items and reads only which were chosen.
        item_features: A .csv or .parquet file of what is publicly known about items (genres, say): ids in the
            first column, numbers in the others. Ratings only; it must not come from the ratings.

    Example:
        >>> from discreet import PrivacyRandom, UserFactorization
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> model = UserFactorization(epsilon=1.0).fit(films, random=PrivacyRandom.simulate(0))
        >>> model.guarantee.unit.value, model.guarantee.proof
        ('user', 'proofs/user_factorization.md')
        >>> film = films.catalog.id_at(0)
        >>> len(model.recommend({film: 5}, k=3))
        3
    """

    name: ClassVar[str] = "user-factorization"
    source: ClassVar[str] = "ours"

    epsilon: float
    delta: float = 1e-6
    # Other estimators read one kind of feedback; here it is a setting.
    feedback: Literal["explicit", "implicit"] = "explicit"  # type: ignore[misc]
    item_features: str | None = None

    def __post_init__(self) -> None:
        check_budget(self.epsilon, self.delta, gaussian=True)
        known = self.feedback in ("explicit", "implicit")
        require(known, "feedback", self.feedback, 'must be "explicit" or "implicit"')
        unused = self.item_features is not None and self.feedback == "implicit"
        require(not unused, "item_features", self.item_features, 'is used with feedback="explicit" only')

    def promise(self, facts: PublicFacts) -> Guarantee:
        """Return the promise; it depends on epsilon and delta alone."""
        part = "" if self.feedback == "explicit" else "_implicit"
        promise = joint_promise(self, facts, f"proofs/user_factorization{part}.md")
        if self.item_features is None:
            return promise
        return replace(promise, assumes=(*promise.assumes, "the table of item features is public"))

    def _refuse(self, data: Crowd) -> None:
        """Refuse, before anything is paid, also a table of items that cannot be read."""
        Estimator._refuse(self, data)
        if self.item_features is not None:
            read_item_table(self.item_features, data.catalog)

    def events(self, facts: PublicFacts) -> Sequence[Any]:
        """Return one Gaussian release: whatever the released numbers decide, all together cost this."""
        if math.isinf(self.epsilon):
            return ()
        multiplier = gaussian_multiplier(self.epsilon, self.delta)
        return [Gaussian(sigma=multiplier, l2_sensitivity=1.0).event()]

    def rows_needed(self) -> str | None:
        """Ask for no rows: sums over people are enough."""
        return None

    def _train(self, data: Crowd, random: PrivacyRandom, progress: Progress) -> Scorer:
        multiplier = 0.0 if math.isinf(self.epsilon) else gaussian_multiplier(self.epsilon, self.delta)
        if self.feedback == "implicit":
            return learn_clicks(data, multiplier, random, progress)
        table = None if self.item_features is None else read_item_table(self.item_features, data.catalog)
        return _learn_ratings(data, table, multiplier, random, progress)


def _learn_ratings(
    data: Crowd, table: Floats | None, multiplier: float, random: PrivacyRandom, progress: Progress
) -> RatingScorer:
    """Release item effects and, where it pays, factors; together one Gaussian with this multiplier."""
    mean, look, rest = _split(multiplier, (_MEAN, _LOOK, 1 - _MEAN - _LOOK))
    seen = first_look(data, mean, look, random)
    if table is not None:
        seen = replace(seen, features=np.column_stack([seen.features, public_directions(table)]))
    progress("user-factorization", 1, 4)
    chosen = plan(seen, multiplier, rest)
    released = release_effects(data, seen, chosen.effects, random)
    taste = free_directions(seen, shrink_effects(seen, released).mean)
    progress("user-factorization", 2, 4)
    explained = glance(data, seen, taste, chosen.glance, random) if chosen.glance else None
    pays = chosen.route == "factors" if explained is None else explained >= _EXPLAINED
    if pays:
        taste = directions(data, seen, taste, chosen.moment, random)
        progress("user-factorization", 3, 4)
        taste = refit(data, seen, taste, chosen, random)
    elif explained is not None:
        more = release_effects(data, seen, chosen.effects_again, random)
        taste = free_directions(seen, shrink_effects(seen, released.with_more(more)).mean)
    progress("user-factorization", 4, 4)
    decisions = chosen.explain() | {
        "part explained at a glance": explained if explained is None else round(explained, 4),
        "part explained, enough for factors": _EXPLAINED,
        "factors pay": pays,
        "factors kept": taste.features.shape[1] - 1,
    }
    return _scorer(data.facts, seen, taste, decisions)


def _split(multiplier: float, shares: Sequence[float]) -> list[float]:
    return [0.0] * len(shares) if multiplier == 0 else list(split_gaussian(multiplier, shares))


def _scorer(facts: PublicFacts, seen: FirstLook, taste: Taste, decisions: dict[str, Any]) -> RatingScorer:
    return RatingScorer(
        mean=seen.middle + seen.half * seen.mean,
        item_bias=seen.half * (taste.offsets - seen.mean),
        item_factors=taste.features[:, 1:],
        ridge=taste.ridge,
        low=facts.low,
        high=facts.high,
        decisions=decisions,
    )
