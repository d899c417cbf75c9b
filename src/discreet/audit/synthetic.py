"""Attack synthetic data: who was in the data, judged by the nearest synthetic neighbor?

Users with known histories (canaries) are in the data or not, by a coin each. A model is fitted and synthetic
users are drawn from it. The attacker sees these alone. For every canary it finds the most similar synthetic
history; if histories are copied, those of members are nearer. How near they usually are depends on the
canary, so the attacker learns that from fits whose canaries are known.

Synthetic data are post-processing of a release, so its guarantee bounds how often the attacker is right.
"""

from __future__ import annotations

import numpy as np

from discreet.audit.canaries.planting import Canaries, Game
from discreet.audit.games.scores import Truth
from discreet.audit.neighboring import Row, SyntheticSpec, Timing
from discreet.core import Floats, PrivacyRandom
from discreet.core.exports import sp
from discreet.data import Interactions
from discreet.models import Estimator, FittedModel
from discreet.synthesis.making import synthesize

#: The setting of models that can be synthesized.
SETTING = "for_synthesis"
# Few other users hide a canary less; rows of a few items are not met by chance.
_BACKGROUND = SyntheticSpec(people=400, items=240, per_person=5)
_ROW = 6


def has_synthetic(estimator: Estimator) -> bool:
    """Return whether synthetic data can be drawn from a model of this kind."""
    return SETTING in estimator.settings


def similar_canaries(estimator: Estimator) -> Canaries:
    """Return canaries with disjoint rows of a few items, among other users of the same items."""
    facts = _BACKGROUND.facts(implicit=estimator.feedback == "implicit")
    rows: dict[str, Row] = {f"user {number:05d}": row for number, row in enumerate(_BACKGROUND.rows(facts))}
    return Canaries.disjoint(rows, facts, _ROW, Timing.of(estimator))


class NearestNeighborAttack:
    """An attack that scores canaries by their similarity to the nearest synthetic user, above the usual."""

    def __init__(self, estimator: Estimator, canaries: Canaries, *, lessons: int, seed: int) -> None:
        self._estimator = estimator.clone(**{SETTING: True})
        self._canaries, self.fits = canaries, 0
        everyone = canaries.dataset(np.ones(len(canaries.rows), dtype=np.bool_))
        own = np.arange(len(canaries.background), everyone.n_users)
        self._rows = _directions(everyone.select_users(own))
        learned: list[Floats] = []
        for number in range(lessons):
            truth = canaries.coins(seed + number)
            # A fit and its mirror image, in which the others are in: each canary is in half of the fits.
            learned += [self._nearest(present, seed + number) for present in (truth, ~truth)]
        self._usual, self._spread = np.mean(learned, axis=0), np.std(learned, axis=0)

    def play(self, seed: int) -> Game:
        """Return the scores of all canaries in one fit, and which of them were in it."""
        truth = self._canaries.coins(seed)
        apart = self._nearest(truth, seed) - self._usual
        return Game(apart / np.where(self._spread > 0, self._spread, 1.0), truth)

    def synthetic(self, data: Interactions, seed: int) -> Interactions:
        """Return the synthetic data that are published about these data."""
        scorer = self._estimator.rehearse(data, PrivacyRandom.simulate(seed))
        model = FittedModel(
            guarantee=self._estimator.promise(data.facts),
            facts=data.facts,
            catalog=data.catalog,
            name=self._estimator.name,
            parameters=self._estimator.settings,
            scorer=scorer,
        )
        # A declared number of users: even with much noise there are neighbors to look at.
        return synthesize(model, users=_BACKGROUND.people, seed=seed)

    def _nearest(self, present: Truth, seed: int) -> Floats:
        """Return, for each canary, the largest cosine between its items and those of a synthetic user."""
        self.fits += 1
        published = _directions(self.synthetic(self._canaries.dataset(present), seed))
        near: Floats = (self._rows @ published.T).max(axis=1).toarray().ravel().astype(np.float64)
        return near


def _directions(data: Interactions) -> sp.csr_matrix[np.float32]:
    """Return each user's set of items as a vector of length 1."""
    weights = np.repeat(np.maximum(np.diff(data.indptr), 1) ** -0.5, np.diff(data.indptr))
    shape = (data.n_users, data.n_items)
    return sp.csr_matrix((weights.astype(np.float32), data.items, data.indptr), shape=shape)
