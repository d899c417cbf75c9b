"""Time lists for everybody beside `implicit.cpu.topk`, which ranks by the same vectors in the same process.

    python benchmarks/lists.py --json

Items, people and their histories are generated; vectors are random, for the time hardly depends on them.
`interactions` orders by bias and product, as the peer does; `paired` blends weights between the most popular
items with it; `ratings` and `paired ratings` add the log-probability of liking; `stars` orders by counts and
expected stars, `popularity` is the same for all. All numbers are nanoseconds of processor time a score
(people times items), on one thread, the least of `--repeat` runs, and include fold-in and the table that
users get; `peer` is the search alone. `ratio` is `interactions` over `peer`, `paired_ratio` is `paired` over
`peer`. `same` is the part of places on which the peer, which computes in single precision, agrees.
"""

from __future__ import annotations

import dataclasses
import time

import harness

K = 20


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"people": 40, "items": 50, "each": 8, "factors": 3, "repeat": 1},
        people=10_000,
        items=17_770,
        each=harness.option(type=int, default=30, help="mean ratings a person"),
        factors=32,
        repeat=3,
    )
    harness.use_threads(1, toy=options.toy)
    sizes = (options.people, options.items, options.each, options.factors, options.repeat)
    harness.tell(harness.in_own_process(measured, *sizes, toy=options.toy), options)


def measured(people: int, items: int, each: int, factors: int, repeat: int) -> dict[str, float]:
    """Return nanoseconds a score by what orders the lists, and those of the peer."""
    import numpy as np
    from large_data import LargeShape, large

    from discreet.core.randomness import PrivacyRandom
    from discreet.models.biases import Biases
    from discreet.models.popularity import Popularity

    data = large(LargeShape(n_users=people, n_items=items, n_ratings=people * each))
    random = PrivacyRandom.simulate(0)
    # A model that knows the scale of ratings may hold any scorer.
    fitted, popular = (one(epsilon=1.0).fit(data, random=random) for one in (Biases, Popularity))
    scores = data.n_users * data.n_items
    found: dict[str, float] = {}
    lists = {}
    for name, scorer in scorers(data, popular.scorer, factors).items():
        model = dataclasses.replace(fitted, scorer=scorer)
        model.recommend_all(data.span(0, min(100, people)), K)
        seconds, lists[name] = fastest(repeat, model.recommend_all, data, K)
        found[name] = 1e9 * seconds / scores
    seconds, places = peer(data, scorers(data, popular.scorer, factors)["interactions"], repeat)
    ours = data.catalog.index_of(lists["interactions"]["item"]).reshape(places.shape)
    found |= {"peer": 1e9 * seconds / scores, "same": float(np.mean(places == ours))}
    ratios = {"ratio": "interactions", "paired_ratio": "paired"}
    return found | {name: found[ours] / max(found["peer"], 1e-9) for name, ours in ratios.items()}


def scorers(data, popular, factors: int):
    """Return a scorer of each kind with random vectors, of the size that fits find."""
    import numpy as np

    from discreet.models.scorers.factors import RatingScorer
    from discreet.models.scorers.interactions import InteractionsAndRatings, InteractionScorer

    random = np.random.default_rng(1)
    counts = np.maximum(popular.popularity, 0.5)
    vectors = random.standard_normal((data.n_items, factors)) / np.sqrt(factors)
    interactions = InteractionScorer.of(counts, vectors, {})
    stars = RatingScorer(
        mean=3.5,
        item_bias=0.4 * random.standard_normal(data.n_items),
        item_factors=0.1 * random.standard_normal((data.n_items, min(factors, 10))),
        ridge=np.full(min(factors, 10) + 1, 3.0),
        low=1.0,
        high=5.0,
        popularity=counts,
        liking=0.4,
    )
    paired = with_weights(interactions, random)
    return {
        "interactions": interactions,
        "paired": paired,
        "ratings": InteractionsAndRatings.of(stars, interactions, 1.0, 0.0),
        "paired ratings": InteractionsAndRatings.of(stars, paired, 1.0, 0.0),
        "stars": stars,
        "popularity": popular,
    }


def with_weights(interactions, random):
    """Return the same scorer with weights between its most popular items, as many as fits keep."""
    import numpy as np

    from discreet.models.user_factorization.settings import FactorizationSettings

    settings = FactorizationSettings()
    count = min(settings.most_co_occurrence_items, interactions.popularity.size)
    shape = (count, min(settings.most_neighbors, count))
    return interactions.with_parts(
        paired=np.sort(np.argsort(-interactions.popularity, kind="stable")[:count]),
        neighbors=random.integers(0, count, shape).astype(np.int32),
        neighbor_weights=(0.01 * random.standard_normal(shape)).astype(np.float16),
        blend=0.8,
    )


def peer(data, scorer, repeat: int):
    """Return the seconds and places of the peer, with the same vectors; the bias is one more factor."""
    import numpy as np
    import scipy.sparse as sp
    from implicit.cpu.topk import topk

    own = np.column_stack([scorer.fold_in(data), np.ones(data.n_users)]).astype(np.float32)
    items = np.column_stack(scorer.search_parts()).astype(np.float32)
    weights = np.ones(data.n_ratings, np.float32)
    seen = sp.csr_matrix((weights, data.items, data.indptr), shape=(data.n_users, data.n_items))
    seconds, (places, _) = fastest(
        repeat, lambda: topk(items, own, K, filter_query_items=seen, num_threads=1)
    )
    return seconds, places


def fastest(repeat: int, job, *arguments):
    """Return the least processor time of a job, and its answer."""
    best = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        answer = job(*arguments)
        best = min(best, time.process_time() - start)
    return best, answer


if __name__ == "__main__":
    main()
