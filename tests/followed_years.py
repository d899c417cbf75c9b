"""Small followed years for tests."""

import numpy as np

from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.follow import Following, FollowSettings

N_ITEMS = 12
ITEMS = Vocabulary.of([f"i{k}" for k in range(N_ITEMS)])
STARS = PublicFacts(n_items=N_ITEMS, low=1, high=5, step=1)
CHOICES = PublicFacts(n_items=N_ITEMS, low=1, high=1)


def batch(rows, facts=STARS, catalog=ITEMS):
    """Return interactions from (user, item, rating) rows."""
    users, items, ratings = zip(*rows, strict=True)
    values = None if facts.low == facts.high else np.array(ratings, dtype=np.float32)
    return Interactions.from_arrays(list(users), list(items), values, facts=facts, catalog=catalog)


def weeks(count, seed=0, users=30, each=40):
    """Return batches of random ratings, in which pairs come again from week to week."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        keys = rng.choice(users * N_ITEMS, each, replace=False)
        found.append(batch([(f"u{k // N_ITEMS}", f"i{k % N_ITEMS}", int(rng.integers(1, 6))) for k in keys]))
    return found


def year(folder, facts=STARS, *, releases=6, epsilon=2.0, **more):
    """Return a new year in a folder."""
    settings = FollowSettings(releases=releases, epsilon=epsilon, half_life=7.0, days=7.0 * releases, **more)
    return Following.start(folder / "year.follow", ITEMS, facts, settings)


class Recorder:
    """Record the exact numbers that noise is put on."""

    def __init__(self):
        self.given = []

    def passing(self, draw, arguments):
        self.given.append(arguments["target"].copy())
        return draw(**arguments)

    def exact(self, mechanism, values):
        raise AssertionError("whole numbers are drawn on directly")
