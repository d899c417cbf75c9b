"""One example of every statistic, made for given data: what the contract suite asks about."""

import hashlib
import math

import numpy as np

from discreet.evaluation.metrics import Metric
from discreet.evaluation.private import OneEach
from discreet.statistics.co_occurrence import CoOccurrence
from discreet.statistics.counts import ItemResiduals, Recency, UserMeans
from discreet.statistics.profiles import ProfileQuestion, Profiles


def examples():
    """Return, by the name of the class, functions that return the fields of an instance for some data."""
    return {
        "UserMeans": lambda data: scale_of(data),
        "UserCount": lambda data: {},
        "HistorySummary": lambda data: {
            "bins": 6,
            "low": data.facts.low,
            "width": data.facts.high - data.facts.low,
            "levels": 5,
        },
        "ScaleVotes": lambda data: {"scales": ((0.0, 0.5), (0.0, 1.0), (-1.0, 1.0))},
        "RatingShares": lambda data: {"low": data.facts.low, "width": data.facts.high - data.facts.low},
        "ItemVotes": lambda data: {"n_items": data.n_items, "norm": "l1"},
        "ItemVotes l2": lambda data: {"n_items": data.n_items, "norm": "l2"},
        "NameVotes": lambda data: {"n_items": data.n_items, "most": 5},
        "VotesAmong": lambda data: {"n_items": data.n_items, "top": np.arange(0, data.n_items, 2)},
        "RecentVotes": lambda data: {"n_items": data.n_items, "norm": "l1", "recency": recency(data)},
        "RecentVotes l2": lambda data: {"n_items": data.n_items, "norm": "l2", "recency": recency(data)},
        "RecentResiduals": lambda data: {
            "plain": ItemResiduals(
                **scale_of(data),
                mean=0.1,
                effects=draw(data.n_items, "effects") / 3,
                item_weights=positive(data.n_items),
                count_part=0.45,
            ),
            "recency": recency(data),
        },
        "ItemResiduals": lambda data: {
            **scale_of(data),
            "mean": 0.1,
            "effects": draw(data.n_items, "effects") / 3,
            "item_weights": positive(data.n_items),
            "count_part": 0.45,
        },
        "ResidualMoment": lambda data: {
            "top": np.arange(0, data.n_items, 2),
            "item_weights": positive(data.n_items),
            **scale_of(data),
            **ridge_model(data),
        },
        "CoOccurrence": lambda data: pairs_of(data),
        "OrderEvidence": lambda data: {
            "asked": CoOccurrence(**pairs_of(data)),
            # Where somebody who takes items in their order stands out.
            "pairs": np.triu(np.ones((data.n_items // 2,) * 2))
            + draw(data.n_items // 2, "pairs", data.n_items // 2) / 9,
            "scale": positive(data.n_items // 2) / 8,
        },
        "ItemVectors": lambda data: {
            **scale_of(data),
            **ridge_model(data),
            "scale": np.array([1.0, 0.5, 2.0]),
            "longest": 2.0,
            "item_weights": positive(data.n_items),
            "count_part": 0.2,
        },
        "ItemContext": lambda data: {
            "vectors": draw(data.n_items, "vectors", 3),
            "squares": positive(data.n_items),
            "longest": math.sqrt(5),
            "item_weights": positive(data.n_items),
            "count_part": 0.7,
            "near": 0.8,
        },
        "ContentSimilarity": lambda data: {
            "vectors": np.clip(0.7 + draw(data.n_items, "words", 3) / 4, -1, 1)
        },
        "ScaledMoment": lambda data: {"scaling": scaling(data)},
        "ScaledProduct": lambda data: {
            "scaling": scaling(data),
            # Where somebody who rates everything alike stands out.
            "vector": draw(data.n_items, "offsets") / np.linalg.norm(draw(data.n_items, "offsets")),
        },
        "SteppedMoment": lambda data: {"so_far": rounds_so_far(data)},
        "SteppedProduct": lambda data: {"so_far": rounds_so_far(data), "vector": contrast(data)},
        "SteppedStretch": lambda data: {"so_far": rounds_so_far(data), "vector": contrast(data)},
        **{
            f"{name}{' l2' if norm == 'l2' else ''}": (lambda data, make=make, norm=norm: make(data, norm))
            for name, make in PROFILES.items()
            for norm in ("l1", "l2")
        },
        "OfKnownPart": lambda data: {"inner": UserMeans(**scale_of(data)), "hiding": OneEach()},
        "PersonalScores": lambda data: {
            "models": (Guesser("one"), Guesser("two")),
            "metric": Metric("hr", 5),
        },
        "PersonalScores ndcg": lambda data: {"models": (Guesser("one"),), "metric": Metric("ndcg", 9)},
        "PersonalScores rmse": lambda data: {
            "models": (Guesser("one"), Guesser("two")),
            "metric": Metric("rmse"),
            "difference": True,
        },
        "HeldOutScores": lambda data: {
            "model": Guesser("one"),
            "hiding": EveryOther(),
            "metrics": (Metric("rmse"), Metric("mrr"), Metric("hr", 5, liked=True)),
            "liked": 0.0,
            "low": -1.0,
            "width": 2.0,
        },
        "ProfiledItems": lambda data: {
            "n_items": data.n_items,
            # A profile belongs to a person, wherever that person's row stands.
            "profiles": np.array([draw(3, f"profile {one}") for one in data.users.ids]).reshape(-1, 3),
        },
    }


def pairs_of(data):
    """Return the fields of co-occurrences of every other item."""
    top = np.arange(1, data.n_items, 2)
    given = {"n_items": data.n_items, "top": top, "weight": positive(top.size)}
    return {**given, "near": 0.8, "apart": 0.3, "back": 5}


class EveryOther:
    """Hide items with an even number."""

    def hidden(self, people):
        return people.items % 2 == 0


class Guesser:
    """Predict by fixed numbers for items, beyond the ends of the scale, and by how much a person rated."""

    above = None

    def __init__(self, what):
        self.what = what

    def predict(self, histories, rows, items):
        return 9 * draw(histories.n_items, self.what)[items] + np.diff(histories.indptr)[rows] % 2

    def worth(self, histories, rows):
        return np.tile(draw(histories.n_items, self.what).astype(np.float32), (len(rows), 1))


def profiles_of(data):
    return Profiles(
        vectors=3 * draw(data.n_items, "profile", 3),
        squares=positive(data.n_items),
        center=np.full(3, 0.1),
        scale=np.full(3, 1.5),
        clip=math.sqrt(5),
    )


def question(data, norm):
    pairs = np.array([[0, 0], [0, 1], [1, 2]])
    return ProfileQuestion(
        item_weights=positive(data.n_items), count_part=0.7, pairs=pairs, pair_part=0.3, norm=norm
    )


PROFILES = {
    "ProfileVotes": lambda data, norm: {"n_items": data.n_items, "norm": norm},
    "StartMoment": lambda data, norm: {
        "items": np.arange(1, data.n_items),
        "item_weights": positive(data.n_items),
        "norm": norm,
    },
    "ProfileGram": lambda data, norm: {"profiles": profiles_of(data), "norm": norm},
    "LinearTerms": lambda data, norm: {"profiles": profiles_of(data), "question": question(data, norm)},
}


def recency(data):
    """Return a time among those of the data, so that some ratings are old and some are new."""
    return Recency(now=10.0, half_life=3.0)


def scale_of(data):
    low, high = data.facts.low, data.facts.high
    return {"middle": (low + high) / 2, "half": (high - low) / 2}


def ridge_model(data):
    features = np.column_stack([np.ones(data.n_items), draw(data.n_items, "features", 2)])
    return {
        "features": features,
        "offsets": draw(data.n_items, "offsets") / 4,
        "ridge": np.array([3.0, 0.2, 0.2]),
    }


def scaling(data):
    from discreet.statistics.scaled_rows import Scaling

    model = ridge_model(data)
    return Scaling(
        **scale_of(data),
        offsets=model["offsets"],
        factors=model["features"][:, 1:],
        ridge=model["ridge"],
        part=0.2,
        clamp=math.inf,
        least_length=0.0,
    )


def rounds_so_far(data):
    """Return two rounds of three that overshoot: a row runs into its bound, then into the opposite one."""
    from discreet.statistics.frank_wolfe_rounds import RoundsSoFar

    return RoundsSoFar(
        **scale_of(data),
        row_bound=1.0,
        rounds=3,
        directions=np.column_stack([contrast(data)] * 2),
        paces=np.array([1e3, 1e6]),
    )


def contrast(data):
    """Return a direction along which the last two items differ most."""
    vector = np.full(data.n_items, 0.02)
    vector[-2:] = 1.0, -1.0
    return vector / np.linalg.norm(vector)


def draw(size, what, columns=None):
    """Return fixed numbers for a purpose."""
    seed = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "little")
    shape = size if columns is None else (size, columns)
    return np.random.default_rng(seed).normal(size=shape)


def positive(size):
    return np.exp(draw(size, "positive"))
