"""Invent film titles and genres for the embedded demonstration; any likeness to a real film is chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.checks import integer
from discreet.randomness import experiment_generator

# Neighbors in this order are close in taste and the last is next to the first: a circle of genres.
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
    """Hold titles in alphabetical order and, in the same order, how much of each genre each one has."""

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
