"""Generate ratings with known structure: binary ratings, rank one, and films about which users differ.

Everything here is repeated by its seed and contains no user's data. The generator for benchmarks of up to
hundreds of millions of ratings is in `benchmarks/large_data.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr

from discreet.core import experiment_generator, integer, one_of, positive_finite, probability, require
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary

__all__ = [
    "InventedItems",
    "OneBitSample",
    "RankOneSample",
    "invented_items",
    "one_bit",
    "popularity_skewed",
    "rank_one",
]

Link = Literal["logistic", "probit"]
_KEYS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitSample:
    """Observed binary ratings of -1 and +1 and the matrix they were drawn from."""

    data: Interactions
    truth: npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOneSample:
    """Observed ratings and the two vectors whose outer product they are."""

    data: Interactions
    user_factor: npt.NDArray[np.float64]
    item_factor: npt.NDArray[np.float64]


def one_bit(
    *,
    n_users: int = 100,
    n_items: int = 100,
    rank: int = 1,
    bound: float = 1.0,
    link: Link = "logistic",
    scale: float = 1.0,
    observed: float = 0.15,
    seed: int = 0,
) -> OneBitSample:
    """Draw binary ratings for a share `observed` of the entries of a random matrix of the given rank.

    The matrix is a product of two uniform [-1/2, 1/2] factors, scaled so that its largest absolute entry is
    `bound`. A rating is +1 with probability h(entry / scale), h the logistic or the normal distribution
    function.

    References:
        The synthetic experiment of the paper on one-bit matrix completion with differential privacy.
    """
    integer("n_users", n_users, least=1)
    integer("n_items", n_items, least=1)
    integer("rank", rank, least=1, most=min(n_users, n_items))
    positive_finite("bound", bound)
    positive_finite("scale", scale)
    one_of("link", link, ("logistic", "probit"))
    probability("observed", observed)
    draw = experiment_generator(seed, "one-bit")
    truth = draw.uniform(-0.5, 0.5, (n_users, rank)) @ draw.uniform(-0.5, 0.5, (n_items, rank)).T
    truth *= bound / np.abs(truth).max()
    entries = np.sort(draw.permutation(n_users * n_items)[: round(observed * n_users * n_items)])
    rows, items = np.divmod(entries, n_items)
    chance = expit(truth[rows, items] / scale) if link == "logistic" else ndtr(truth[rows, items] / scale)
    ratings = np.where(draw.random(len(entries)) < chance, 1, -1)
    facts = PublicFacts(n_items=n_items, low=-1, high=1, step=2, n_users=n_users)
    counts = np.bincount(rows, minlength=n_users)
    data = numbered(counts, items, ratings, facts=facts, name=f"one-bit {link}")
    return OneBitSample(data=data, truth=truth)


def rank_one(
    *, n_users: int = 500_000, n_items: int = 400, per_user: int = 80, seed: int = 0
) -> RankOneSample:
    """Draw `per_user` entries of each row of u v', every entry of u and v uniform on [0, 1].

    References:
        The synthetic experiment of the poster on Frank-Wolfe with joint differential privacy.
    """
    integer("n_users", n_users, least=1)
    integer("n_items", n_items, least=1)
    integer("per_user", per_user, least=1, most=n_items)
    draw = experiment_generator(seed, "rank one")
    left, right = draw.random(n_users), draw.random(n_items)
    items = np.empty((n_users, per_user), dtype=np.int32)
    values = np.empty((n_users, per_user), dtype=np.float32)
    block = max(1, _KEYS_AT_ONCE // n_items)
    for start in range(0, n_users, block):
        rows = slice(start, min(start + block, n_users))
        keys = draw.integers(0, 1 << 32, (rows.stop - start, n_items), dtype=np.uint32)
        chosen = np.argpartition(keys, per_user - 1, axis=1)[:, :per_user]
        items[rows] = np.sort(chosen, axis=1)
        values[rows] = left[rows, None] * right[items[rows]]
    facts = PublicFacts(n_items=n_items, low=0, high=1, max_per_user=per_user, n_users=n_users)
    counts = np.full(n_users, per_user)
    data = numbered(counts, items.reshape(-1), values.reshape(-1), facts=facts, name="rank-one")
    return RankOneSample(data=data, user_factor=left, item_factor=right)


def popularity_skewed(
    *,
    n_users: int = 6_000,
    n_items: int = 600,
    mean_per_user: float = 60,
    step: float = 1.0,
    seed: int = 0,
    name: str = "discreet-demo",
) -> Interactions:
    """Draw star ratings of invented films by users who like some genres and not others.

    A few films are seen by many (Zipf), users see slightly more of what they like, and a rating is the sum
    of the user's bias, the film's quality, the match of latent factors and noise, rounded to `step` stars
    between 1 and 5. Item ids are the titles; `invented_items(n_items, seed)` returns their genres.
    """
    integer("n_users", n_users, least=1)
    integer("n_items", n_items, least=len(GENRES), most=MOST_TITLES)
    fewest = min(15, n_items)
    require(
        fewest <= mean_per_user <= n_items / 2,
        "mean_per_user",
        mean_per_user,
        must=f"be in [{fewest}, n_items / 2]",
    )
    one_of("step", step, (0.5, 1.0))
    draw = experiment_generator(seed, "popularity-skewed")
    catalog = invented_items(n_items, seed)
    quality = draw.normal(0, 0.4, n_items)
    opinion = _taste(n_users, catalog, draw) + quality
    seen = _choose(opinion, quality, mean_per_user, fewest, draw)
    rows, items = np.nonzero(seen)
    mildness = draw.normal(0, 0.35, n_users)
    stars = 3.4 + mildness[rows] + opinion[rows, items] + draw.normal(0, 0.6, len(rows))
    values = np.clip(np.round(stars / step) * step, 1, 5).astype(np.float32)
    year = 365 * 24 * 3600
    times = draw.integers(0, 5 * year, len(rows)) + 1_500_000_000
    return Interactions(
        indptr=_row_ends(np.bincount(rows, minlength=n_users)),
        items=items.astype(np.int32),
        values=values,
        times=times,
        users=Vocabulary.of(np.arange(1, n_users + 1)),
        catalog=Vocabulary.of(catalog.titles),
        facts=PublicFacts(n_items=n_items, low=1, high=5, step=step, n_users=n_users),
        name=name,
    )


def _taste(n_users: int, catalog: InventedItems, draw: np.random.Generator) -> npt.NDArray[np.float32]:
    """Return how much more or less each user likes each item than others do.

    Most of it lies in the plane of the circle of genres, so two dimensions already help; favorites and
    aversions spread the rest over all genres.
    """
    n_genres = len(catalog.genres)
    angles = 2 * np.pi * np.arange(n_genres) / n_genres
    heading, strength = draw.uniform(0, 2 * np.pi, n_users), draw.uniform(0.5, 1.2, n_users)
    liking = strength[:, None] * np.cos(heading[:, None] - angles)
    liking += draw.normal(0, 0.3, (n_users, n_genres))
    typical = catalog.weights * draw.uniform(0.7, 1.3, (len(catalog.titles), 1))
    return (liking.astype(np.float32) @ typical.T.astype(np.float32)).astype(np.float32)


def _choose(
    opinion: npt.NDArray[np.float64],
    quality: npt.NDArray[np.float64],
    mean_per_user: float,
    fewest: int,
    draw: np.random.Generator,
) -> npt.NDArray[np.bool_]:
    """Return who sees what, drawn without replacement: Gumbel noise turns weights into an order."""
    n_users, n_items = opinion.shape
    rank = draw.permutation(n_items) + 1
    fame = -0.9 * np.log(rank + 4) + 0.8 * quality
    lure = fame + 0.6 * opinion + draw.gumbel(size=opinion.shape)
    extra = draw.lognormal(0, 0.8, n_users)
    extra *= (mean_per_user - fewest) / np.exp(0.32)
    counts = np.minimum(fewest + extra.astype(np.int64), max(fewest, n_items // 2))
    position = np.empty(opinion.shape, dtype=np.int32)
    np.put_along_axis(
        position, np.argsort(-lure, axis=1), np.arange(n_items, dtype=np.int32)[None, :], axis=1
    )
    seen: npt.NDArray[np.bool_] = position < counts[:, None]
    return seen


def numbered(
    counts: npt.NDArray[np.int64],
    items: npt.NDArray[np.integer],
    values: npt.NDArray[np.number],
    *,
    facts: PublicFacts,
    name: str,
) -> Interactions:
    """Return interactions whose external ids are the row and column numbers."""
    return Interactions(
        indptr=_row_ends(counts),
        items=items.astype(np.int32, copy=False),
        values=values.astype(np.float32, copy=False),
        times=None,
        users=Vocabulary.of(np.arange(len(counts))),
        catalog=Vocabulary.of(np.arange(facts.n_items)),
        facts=facts,
        name=name,
    )


def _row_ends(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


# Neighbors in this order are similar and the last is next to the first: a circle of genres.
_NOUNS: dict[str, tuple[str, ...]] = {
    "space": (
        "Comet", "Orbit", "Starship", "Nebula", "Lunar Base", "Satellite", "Meteor", "Airlock",
        "Red Planet", "Space Station", "Eclipse", "Astronaut",
    ),
    "fantasy": (
        "Dragon", "Wizard", "Enchanted Forest", "Crystal Tower", "Griffin", "Spell Book", "Elven King",
        "Magic Ring", "Unicorn", "Rune Stone", "Giant", "Phoenix",
    ),
    "ghost": (
        "Haunted House", "Phantom", "Crypt", "Whispering Wall", "Ghost", "Graveyard", "Cellar Door",
        "Seance", "Cursed Doll", "Attic", "Shadow Bride", "Mirror",
    ),
    "detective": (
        "Inspector", "Alibi", "Missing Witness", "Locked Room", "Clue", "Cold Case", "Fingerprint",
        "Suspect", "Private Eye", "Verdict", "Poisoned Letter", "Informant",
    ),
    "heist": (
        "Bank Vault", "Getaway Car", "Safecracker", "Diamond", "Forger", "Casino Job", "Jewel Thief",
        "Master Plan", "Blueprint", "Armored Train", "Con Artist", "Stolen Painting",
    ),
    "western": (
        "Sheriff", "Saloon", "Outlaw", "Gold Mine", "Prairie", "Stagecoach", "Gunslinger", "Canyon",
        "Ranch", "Mustang", "Dusty Trail", "Frontier Town",
    ),
    "sea": (
        "Lighthouse", "Harbor", "Shipwreck", "Captain", "Island", "Whale", "Tide", "Submarine",
        "Mermaid", "Pirate Ship", "Storm Coast", "Lagoon",
    ),
    "romance": (
        "Love Letter", "Wedding", "First Kiss", "Summer Garden", "Proposal", "Sweetheart", "Rose",
        "Honeymoon", "Serenade", "Balcony", "Bouquet", "Confession",
    ),
    "comedy": (
        "Mother-in-Law", "Clumsy Waiter", "Neighbor", "Circus Clown", "Dentist", "Substitute Teacher",
        "Camping Trip", "Office Party", "Talking Parrot", "Landlord", "Pizza Delivery", "Golf Club",
    ),
    "music": (
        "Violin", "Jazz Club", "Opera Singer", "Piano", "Drummer", "Rock Band", "Concert Hall",
        "Ballad", "Dance Hall", "Melody", "Conductor", "Record Shop",
    ),
}  # fmt: skip

_PHRASES = (
    "The Last {}", "The Quiet {}", "The {} and I", "Return of the {}", "Beyond the {}", "The {} Next Door",
    "The Forgotten {}", "One More {}", "Night of the {}", "The Secret of the {}", "My Brother's {}",
    "The {} at Dawn", "Waiting for the {}", "The Seventh {}", "Farewell to the {}", "The Other {}",
    "The {} in Winter", "Goodbye, {}", "The Lonely {}", "The {} Called Home",
)  # fmt: skip

GENRES: tuple[str, ...] = tuple(_NOUNS)
MOST_TITLES = sum(len(nouns) for nouns in _NOUNS.values()) * len(_PHRASES)
_HAS_SECOND_GENRE = 0.3
_SECOND_WEIGHT = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class InventedItems:
    """Titles in alphabetical order and, in the same order, how much of each genre each one has."""

    titles: tuple[str, ...]
    genres: tuple[str, ...]
    weights: npt.NDArray[np.float32]
    """One row an item, one column a genre: 1 for the main genre, less for a second one, otherwise 0."""


def invented_items(n_items: int = 600, seed: int = 0) -> InventedItems:
    """Return `n_items` different titles, the genres as evenly filled as the number allows."""
    integer("n_items", n_items, least=1, most=MOST_TITLES)
    draw = experiment_generator(seed, "invented titles")
    genre = np.arange(n_items) % len(GENRES)
    titles = [""] * n_items
    for index, nouns in enumerate(_NOUNS.values()):
        members = np.flatnonzero(genre == index)
        pairs = draw.permutation(len(nouns) * len(_PHRASES))[: len(members)]
        for member, pair in zip(members.tolist(), pairs.tolist(), strict=True):
            titles[member] = _PHRASES[pair % len(_PHRASES)].format(nouns[pair // len(_PHRASES)])
    order = np.argsort(np.array(titles))
    weights = _genre_weights(genre, draw)[order]
    weights.flags.writeable = False
    return InventedItems(titles=tuple(titles[i] for i in order.tolist()), genres=GENRES, weights=weights)


def _genre_weights(genre: npt.NDArray[np.int64], draw: np.random.Generator) -> npt.NDArray[np.float32]:
    weights = np.zeros((len(genre), len(GENRES)), dtype=np.float32)
    second = (genre + draw.integers(1, len(GENRES), len(genre))) % len(GENRES)
    mixed = draw.random(len(genre)) < _HAS_SECOND_GENRE
    weights[np.flatnonzero(mixed), second[mixed]] = _SECOND_WEIGHT
    weights[np.arange(len(genre)), genre] = 1
    return weights
