"""HR@10 and NDCG@10 of the same people through every door: as scored, and as served.

    python benchmarks/doors.py --json                            MovieLens 100K at epsilon 1 and 5
    python benchmarks/doors.py --data movielens-1m,choices.parquet --models choices-only

Everybody's latest item is hidden, a model is fitted on the rest with simulated noise, and `--people` of the
tested people are served from a table with times, so that their items are not all of the catalog, and from a
folder of shards; `--singles` of them also one by one and by the service, and a tenth of those by the command
line, which starts anew for each. Prints, for each data set, model and epsilon, both metrics of
`evaluate` on these people and of each door's lists, and how many lists differ from the first door's.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import harness
import numpy as np
import polars as pl

from discreet.core.randomness import PrivacyRandom
from discreet.data.inputs import open_data
from discreet.data.interactions import Interactions
from discreet.data.splits import leave_one_out
from discreet.evaluation import measure
from discreet.models.fitted import FittedModel
from discreet.models.lists import Wanted
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.sources.sharding import make_shards
from discreet.sources.shards import open_shards

K = 10
Lists = list[list[str | int]]


def table(people: Interactions) -> pl.DataFrame:
    """Return histories as a table with times, where there are any."""
    columns = {
        "user": people.users.id_at(people.rows()).tolist(),
        "item": people.catalog.id_at(people.items).tolist(),
        "rating": people.values,
    }
    return pl.DataFrame(columns | ({} if people.times is None else {"time": people.times}))


def by_user(lists: pl.DataFrame, people: Interactions) -> Lists:
    found: dict[str, list[str | int]] = {str(user): [] for user in people.users.ids.tolist()}
    for user, item in lists.sort("user", "rank").select("user", "item").iter_rows():
        found[str(user)].append(item)
    return list(found.values())


def shown(lists: Lists, test: Interactions) -> dict[str, float]:
    """Return both metrics of lists; everybody hid one item."""
    hidden = test.catalog.id_at(test.items).tolist()
    places = [one.index(item) if item in one else None for one, item in zip(lists, hidden, strict=True)]
    gains = [0.0 if place is None else 1 / np.log2(place + 2) for place in places]
    return {"hr@10": float(np.mean(np.array(gains) > 0)), "ndcg@10": float(np.mean(gains))}


def served(
    model: FittedModel, people: Interactions, singles: int, folder: Path
) -> Iterator[tuple[str, Lists]]:
    """Yield doors and the lists they give; the last ones to the first `singles` people only."""
    file, histories, out = folder / "m.discreet", folder / "histories.csv", folder / "lists.parquet"
    model.save(file, force=True)
    frame = table(people)
    frame.write_csv(histories)
    yield "recommend_all", by_user(model.recommend_all(frame, K), people)
    verb = [sys.executable, "-m", "discreet", "recommend", str(file), "-k", str(K)]
    subprocess.run(
        [*verb, "--histories", histories, "--out", out, "--force"], check=True, stdout=subprocess.DEVNULL
    )
    yield "--histories", by_user(pl.read_parquet(out), people)
    yield "shards", by_user(shard_lists(model, people, frame, folder), people)
    few = people.select_users(np.arange(min(singles, people.n_users)))
    mine = [frame.filter(user=user).drop("user") for user in few.users.ids.tolist()]
    if people.times is not None:
        mine = [one.sort("time", maintain_order=True) for one in mine]
    rated = model.scorer.needs_ratings
    lists = [
        list(one.select("item", "rating").iter_rows()) if rated else one["item"].to_list() for one in mine
    ]
    named = ["item", *(["rating"] if rated else []), *(["time"] if people.times is not None else [])]
    rows = [one.select(named).to_dicts() for one in mine]
    yield "--history", [one_person(verb, one, folder / "me.csv") for one in mine[: max(singles // 10, 1)]]
    yield "recommend, oldest first", [[item for item, *_ in model.recommend(one, K)] for one in lists]
    yield "recommend, with times", [[item for item, *_ in model.recommend(one, K)] for one in rows]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = subprocess.Popen(
        [*verb[:3], "serve", str(file), "--port", str(port)], stderr=subprocess.DEVNULL
    )
    try:
        yield "POST /recommend", [ask(port, one) for one in rows]
    finally:
        service.terminate()
        service.wait()


def shard_lists(model: FittedModel, people: Interactions, frame: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """Return the lists of a folder of shards, as `recommend MODEL FOLDER --all` makes them."""
    frame.write_parquet(folder / "histories.parquet")
    facts = people.facts
    make_shards(
        [folder / "histories.parquet"],
        folder / "shards",
        n_shards=2,
        low=facts.low,
        high=facts.high,
        step=facts.step,
        catalog=people.catalog,
    )
    shards = open_shards(folder / "shards")
    return pl.concat(
        [
            part
            for number in range(shards.n_shards)
            for part in shard_lists(model, shards, number, Wanted(k=K))
        ]
    )


def one_person(verb: list[str], history: pl.DataFrame, file: Path) -> list[str | int]:
    """Return what the command line lists for one person."""
    history.write_csv(file)
    told = subprocess.run([*verb, "--history", str(file), "--json"], check=True, capture_output=True)
    return [row["item"] for row in json.loads(told.stdout)["recommendations"]]


def ask(port: int, history: object) -> list[str | int]:
    """Return what the service recommends; it may still be starting."""
    body = json.dumps({"history": history, "k": K}).encode()
    for _ in range(600):
        try:
            with urlopen(Request(f"http://127.0.0.1:{port}/recommend", data=body), timeout=60) as answer:
                return [one["item"] for one in json.load(answer)["items"]]
        except URLError as error:
            if hasattr(error, "code"):
                raise
            time.sleep(0.1)
    raise RuntimeError("The service did not start.")


def compare(
    name: str, model: str, epsilon: float, options: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """Return both metrics as scored and through each door, and how many lists differ."""
    if Path(name).exists():
        data = open_data(name, implicit=name.endswith(".parquet"))
    else:
        data = harness.ratings(name, toy=options.toy)
    split = leave_one_out(data, options.seed)
    feedback = "implicit" if model == "choices-only" else "explicit"
    fitted = UserFactorization(epsilon=epsilon, delta=1e-5, feedback=feedback).fit(
        split.train, random=PrivacyRandom.simulate(options.seed)
    )
    tested = np.flatnonzero(np.diff(split.test.indptr))
    chosen = np.random.default_rng(options.seed).permutation(tested)[: options.people]
    train, test = split.train.select_users(chosen), split.test.select_users(chosen)
    found: dict[str, dict[str, float]] = {}
    first: Lists = []
    with tempfile.TemporaryDirectory() as folder:
        for door, lists in served(fitted, train, options.singles, Path(folder)):
            first = first or lists
            part = np.arange(len(lists))
            scored = f"evaluate, {len(lists)} people"
            if scored not in found:
                found[scored] = measure(
                    fitted, train.select_users(part), test.select_users(part), "hr@10,ndcg@10"
                )
            differ = sum(one != other for one, other in zip(lists, first, strict=False))
            found[door] = {**shown(lists, test.select_users(part)), "differ": differ}
    return found


def main() -> None:
    toy = {"models": "choices-only", "epsilons": "5", "people": 5, "singles": 2}
    options = harness.options(
        __doc__,
        toy=toy,
        data=harness.option(default="movielens-100k", help="names or files, separated by commas"),
        models="user-factorization,choices-only",
        epsilons="1,5",
        people=1500,
        singles=200,
        seed=0,
    )
    results: dict = {}
    for name in options.data.split(","):
        for model in options.models.split(","):
            if name.endswith(".parquet") and model != "choices-only":
                continue
            for epsilon in options.epsilons.split(","):
                found = compare(name, model, float(epsilon), options)
                results.setdefault(name, {}).setdefault(model, {})[epsilon] = found
                harness.say(f"{name} {model} {epsilon}", found)
    harness.tell(results, options)


if __name__ == "__main__":
    main()
