"""Make synthetic interactions from a fitted model: post-processing of its release, at no further cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np

from discreet.core.arrays import Floats, Indices
from discreet.core.checks import instance
from discreet.core.errors import WrongKind, shown
from discreet.core.randomness import experiment_generator
from discreet.data.facts import N_ITEMS, SCALE
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.models.fitted import FittedModel
from discreet.models.scorers.interactions import InteractionScorer
from discreet.models.scorers.interactions_and_ratings import InteractionsAndRatings
from discreet.models.scorers.released_histories import ReleasedHistories
from discreet.models.scorers.scorer import Scorer
from discreet.synthesis.calibration import calibrated
from discreet.synthesis.errors import NoHistoriesIn
from discreet.synthesis.labels import summary
from discreet.synthesis.lengths import LengthSource, number_of_users
from discreet.synthesis.ratings import draw_ratings, on_scale
from discreet.synthesis.sampling import Sampler

#: No user of the data is called this.
USER = "synthetic-{}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """Synthetic interactions, and sentences about how they were made."""

    data: Interactions
    sentences: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)


def synthesize(
    model: FittedModel,
    users: int | None = None,
    *,
    length: int | None = None,
    order: bool | None = None,
    seed: int = 0,
) -> Interactions:
    """Return interactions of synthetic users, drawn from what the model released.

    This is post-processing: it costs no privacy budget, and the model's guarantee covers the result. `users`
    is how many to draw; by default as many as the release counted. `length` declares the mean length of a
    history; by default lengths come from the release, if it was fitted with `for_synthesis`. `order` states
    whether interactions have times; by default they have if the release knows an order. Times are positions
    in a user's history.

    Raises:
        ParameterError: The model does not say which items users choose, or not how many users there are.

    Example:
        >>> from discreet import PrivacyRandom, UserFactorization, synthesize
        >>> from discreet.data.datasets.synthetic import popularity_skewed
        >>> films = popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
        >>> recipe = UserFactorization(epsilon=1.0, feedback="implicit", for_synthesis=True)
        >>> model = recipe.fit(films, random=PrivacyRandom.simulate(0))
        >>> synthesize(model, users=50).n_users
        50
    """
    return make(model, users, length=length, order=order, seed=seed).data


def make(
    model: FittedModel,
    users: int | None = None,
    *,
    length: int | None = None,
    order: bool | None = None,
    seed: int = 0,
) -> Synthetic:
    """Return what `synthesize` does, with sentences for its label."""
    instance("model", model, FittedModel)
    if not (order is None or isinstance(order, bool)):
        raise WrongKind(name="order", kind="True, False, or None", found=shown(order))
    interactions, ratings = _parts(model.scorer, model.name)
    released = ReleasedHistories.of(model.scorer)
    count = number_of_users(released, users)
    longest = min(model.facts.n_items, model.facts.max_per_user or model.facts.n_items)
    source = LengthSource.of(released, length, longest)
    ordered = order if order is not None else released is not None and released.ordered >= 0.5
    random = experiment_generator(seed, "synthetic users")
    lengths = source.draw(count, random)
    sampler = Sampler.of(interactions.popularity, interactions.item_factors, ordered=ordered)
    sampler = calibrated(sampler, interactions.popularity, lengths, random)
    items = np.concatenate([block.items for block in sampler.draw(lengths, random)])
    values: Floats = np.ones(items.size)
    if ratings is not None:
        values = on_scale(draw_ratings(ratings.stars, lengths, items, random), lengths, model.facts, released)
    data = _interactions(model, lengths, items, values, ordered)
    return Synthetic(
        data=data,
        sentences=tuple(_sentences(source, released, users, ordered, order, ratings is not None)),
        settings={"users": count, "length": length, "order": ordered, "seed": seed},
    )


def released_popularity(model: FittedModel) -> Floats:
    """Return how often items are chosen, as released."""
    return _parts(model.scorer, model.name)[0].popularity


def is_rated(model: FittedModel) -> bool:
    """Return whether synthetic users of this model rate items."""
    return _parts(model.scorer, model.name)[1] is not None


def _parts(scorer: Scorer, name: str) -> tuple[InteractionScorer, InteractionsAndRatings | None]:
    if isinstance(scorer, InteractionScorer):
        return scorer, None
    if isinstance(scorer, InteractionsAndRatings):
        return scorer.choice, scorer
    raise NoHistoriesIn(model=name)


def _interactions(
    model: FittedModel, lengths: Indices, items: Indices, values: Floats, ordered: bool
) -> Interactions:
    """Return the histories as interactions, each user's items in ascending order."""
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.repeat(np.arange(lengths.size), lengths)
    order = np.argsort(rows * model.facts.n_items + items, kind="stable")
    times = (np.arange(items.size) - indptr[rows])[order] if ordered else None
    # A catalog or a scale that was taken from real data is not public because synthetic data have it.
    taken = tuple(name for name in model.facts.from_file if name in (N_ITEMS, SCALE))
    facts = replace(model.facts, max_per_user=None, n_users=lengths.size, from_file=taken)
    if not is_rated(model):
        facts = facts.without_scale()
    return Interactions(
        indptr=indptr,
        items=items[order].astype(np.int32),
        values=values[order].astype(np.float32),
        times=times,
        users=Vocabulary.of([USER.format(number) for number in range(1, lengths.size + 1)]),
        catalog=model.catalog,
        facts=facts,
        name="synthetic",
        origin=summary(model.guarantee),
    )


def _sentences(
    source: LengthSource,
    released: ReleasedHistories | None,
    users: int | None,
    ordered: bool,
    order: bool | None,
    rated: bool,
) -> list[str]:
    """Return where each property of the data comes from."""
    said = [source.sentence()]
    said.append(
        "the number of users is a noisy count of the release"
        if users is None
        else "the number of users is declared"
    )
    if ordered:
        known = "the release states that histories have one" if order is None else "declared"
        said.append(f"times are positions in a history ({known})")
    if rated and released is None:
        said.append("the spread of ratings is a public constant, not learned from the data")
    return said
