"""Measure bundles in Chromium: how large they are, how long a list takes, how lists agree with `recommend`.

    python benchmarks/bundle.py --json

A model is fitted on each data set and bundled. A page of Chromium opens the bundle and makes lists of ten for
people of the data, with their own histories. `download` is all that the page loads, `zipped` the same as a
server with gzip sends it. `shared` is the part of the first ten items that `recommend` has, too, `equal` the
part of lists that are the same in every place. Milliseconds are those of the browser's clock, one list after
the other; `open` is reading the files and the first list. Gowalla is looked for in DISCREET_DATA.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import http.server
import json
import os
import sys
import tempfile
import threading
from pathlib import Path

import harness

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

K = 10
# What is fitted: a data set, and whether ratings are left out.
SETS = {
    "movielens-1m, interactions": ("movielens-1m", True),
    "movielens-1m, ratings": ("movielens-1m", False),
    "gowalla, interactions": ("gowalla", True),
}
LISTS = """async ({ precision, histories, ordered, k }) => {
    const { openBundle } = await import("./shared/recommender.js");
    const begin = performance.now();
    const bundle = await openBundle(new URL("./", location), { precision });
    bundle.recommend(histories[0], { k, ordered });
    const opened = performance.now() - begin;
    const times = [];
    const lists = histories.map((history) => {
        const start = performance.now();
        const list = bundle.recommend(history, { k, ordered });
        times.push(performance.now() - start);
        return list.map(({ item }) => item);
    });
    return { lists, times, opened };
}"""


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"people": 5},
        people=harness.option(type=int, default=1000, help="lists to make of each bundle"),
        epsilon=5.0,
    )
    harness.use_threads(1, toy=options.toy)
    sets = dict(list(SETS.items())[:2]) if options.toy else SETS
    found = {name: measured(*what, options) for name, what in sets.items()}
    harness.tell(found, options)


def measured(dataset: str, implicit: bool, options: argparse.Namespace) -> dict[str, object]:
    """Fit and bundle one model, and return what Chromium says of it."""
    from discreet.export.bundle.folder import write_bundle
    from discreet.export.bundle.parts import PRECISIONS

    data = loaded(dataset, implicit, toy=options.toy)
    model = fitted(data, implicit, options.epsilon)
    people = some(data, options.people)
    wanted = model.recommend_all(people, K)["item"].to_numpy().reshape(people.n_users, -1).tolist()
    with tempfile.TemporaryDirectory() as folder:
        about = write_bundle(model, Path(folder) / "bundle", precisions=list(PRECISIONS))
        size = sizes(Path(folder) / "bundle")
        in_browser = browsed(
            folder, questions(people, rated=model.scorer.needs_ratings), people.times is not None
        )
    by_precision = {
        precision: compared(in_browser[precision], wanted, about["models"][precision])
        for precision in PRECISIONS
    }
    return {
        "items": data.n_items,
        "people": people.n_users,
        "epsilon": options.epsilon,
        **size,
        **by_precision,
    }


def loaded(dataset: str, implicit: bool, *, toy: bool):
    from discreet.data.inputs import open_data
    from discreet.data.reading.readers import read

    if dataset == "gowalla":
        path = Path(os.environ.get("DISCREET_DATA", ".")) / "gowalla" / "train.parquet"
        if not path.is_file():
            sys.exit(
                "Gowalla is not on this machine: DISCREET_DATA must name a folder with gowalla/train.parquet."
            )
        return read(path, implicit=True)
    if toy:
        return harness.ratings(dataset, toy=True)
    return open_data(dataset, implicit=implicit)


def fitted(data, implicit: bool, epsilon: float):
    """Return the flagship with titles as long as those of films."""
    import dataclasses

    from discreet.core.randomness import PrivacyRandom
    from discreet.models.user_factorization.estimator import UserFactorization

    feedback = {"feedback": "implicit"} if implicit else {}
    model = UserFactorization(epsilon=epsilon, **feedback).fit(data, random=PrivacyRandom.simulate(0))
    titles = tuple(f"The title of item {place} (1999)" for place in range(data.n_items))
    return dataclasses.replace(model, public={"title": titles})


def some(data, count: int):
    import numpy as np

    rows = np.random.default_rng(1).choice(data.n_users, min(count, data.n_users), replace=False)
    return data.select_users(np.sort(rows))


def questions(people, *, rated: bool) -> list[list[dict[str, object]]]:
    """Return histories as a program in a browser keeps them."""
    asked = []
    for start, stop in zip(people.indptr[:-1], people.indptr[1:], strict=True):
        columns = {"item": people.catalog.id_at(people.items[start:stop]).tolist()}
        if rated:
            columns["rating"] = people.values[start:stop].tolist()
        if people.times is not None:
            columns["time"] = people.times[start:stop].tolist()
        asked.append([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
    return asked


def sizes(folder: Path) -> dict[str, int]:
    """Return the bytes that the page loads: what its worker keeps, and itself."""
    worker = (folder / "worker.js").read_text(encoding="utf8")
    kept = json.loads(worker.partition("const FILES = ")[2].partition(";")[0])
    # The page of this bundle opens int8, which stands first; "./" is index.html again.
    loaded = [(folder / name).read_bytes() for name in (*kept, "worker.js") if name != "./"]
    return {"download": sum(map(len, loaded)), "zipped": sum(len(gzip.compress(one)) for one in loaded)}


def browsed(folder: str, histories: list[object], ordered: bool) -> dict[str, dict[str, object]]:
    """Return lists and times by precision, from a page of Chromium."""
    from discreet.export.bundle.parts import PRECISIONS
    from service.browser import browsing

    with hosted(folder) as url, browsing() as profile:
        page = profile.open(f"{url}/bundle/")
        asked = {"histories": histories, "ordered": ordered, "k": K}
        return {one: page.evaluate(LISTS, {**asked, "precision": one}) for one in PRECISIONS}


@contextlib.contextmanager
def hosted(folder: str):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=folder)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def compared(answer: dict, wanted: list[list[object]], about: dict) -> dict[str, float]:
    import numpy as np

    pairs = list(zip(answer["lists"], wanted, strict=True))
    return {
        "bytes": about["bytes"],
        "shared": float(np.mean([len(set(one) & set(own)) / len(own) for one, own in pairs])),
        "equal": float(np.mean([one == own for one, own in pairs])),
        "shared_on_drawn": about["shared_at_10"],
        "median_ms": round(float(np.median(answer["times"])), 3),
        "worst_of_100_ms": round(float(np.quantile(answer["times"], 0.99)), 3),
        "open_ms": round(answer["opened"], 1),
    }


if __name__ == "__main__":
    main()
