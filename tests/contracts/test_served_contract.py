"""What is served is what is scored: one person's list is the same through every door, item by item."""

import contextlib
import dataclasses
import io
import json
import re
import sys
from functools import cache

import numpy as np
import polars as pl
import pytest

from contracts.families import by_default
from discreet import cli
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.evaluation import measure
from discreet.export.bundle import parts as bundle_parts
from discreet.model_settings import MODELS
from discreet.models.lists import Wanted
from discreet.models.scorers.one_bit import ReleasedCells
from discreet.service.publishing import browser_vectors
from discreet.service.recommend_app import answering_app
from discreet.sources.lists import shard_lists
from discreet.sources.sharding import make_shards
from discreet.sources.shards import open_shards
from discreet.testing import refuses
from service.node import NODE, device_lists
from service.servers import InProcess, ask_json
from shard_files import declared

# The toy's choices are random, so that no fit finds directions in them; with drawn ones their order counts.
DRAWN = {"user-factorization": "ratings", "user-factorization of choices": "choices"}
NAMES = sorted({*MODELS, *DRAWN})
K, PEOPLE = 5, [3, 20, 77]


@pytest.fixture(scope="session")
def own(timed):
    """Return some of the people that models were fitted to; they have not met everything."""
    people = timed.select_users(PEOPLE)
    assert np.unique(people.items).size < timed.n_items
    return people


@pytest.fixture(scope="session")
def newcomers(own):
    """Return people with the same histories whom no model knows."""
    return dataclasses.replace(own, users=Vocabulary.of([f"visitor {row}" for row in range(own.n_users)]))


@pytest.fixture(scope="session")
def model_of(fitted, timed):
    """Return a model by its name; directions of choices are drawn where the fit has none."""

    @cache
    def find(name):
        if name not in DRAWN:
            return fitted(name)
        model = fitted("user-factorization")
        directions = np.random.default_rng(8).standard_normal((timed.n_items, 3))
        scorer = model.scorer.with_parts(co_occurrences=directions)
        return dataclasses.replace(model, scorer=scorer if DRAWN[name] == "ratings" else scorer.choice)

    return find


@pytest.fixture(scope="session")
def folders(own, newcomers, tmp_path_factory):
    """Return folders of shards by whose they are."""
    made = {}
    for whose, people in (("own", own), ("newcomers", newcomers)):
        made[whose] = tmp_path_factory.mktemp("served") / whose
        frame_of(people).write_parquet(made[whose].with_suffix(".parquet"))
        make_shards([made[whose].with_suffix(".parquet")], made[whose], n_shards=2, **declared(people))
    return made


def frame_of(people):
    """Return histories as a table whose rows stand in no order."""
    order = np.random.default_rng(1).permutation(people.n_ratings)
    columns = {
        "user": people.users.id_at(people.rows()[order]).tolist(),
        "item": people.catalog.id_at(people.items[order]).tolist(),
        "rating": people.values[order],
    }
    return pl.DataFrame(columns | ({} if people.times is None else {"timestamp": people.times[order]}))


def oldest_first(people, row):
    """Return a person's history as (item, rating) pairs."""
    cells = np.arange(*people.indptr[row : row + 2])
    cells = cells[np.argsort(people.times[cells])]
    return list(
        zip(people.catalog.id_at(people.items[cells]).tolist(), people.values[cells].tolist(), strict=True)
    )


def by_person(lists, people):
    """Return the items of everybody's list from a table of lists."""
    found = lists.with_columns(pl.col("user").cast(pl.String)).sort("user", "rank")
    return [found.filter(user=str(user))["item"].to_list() for user in people.users.ids]


def items_of(listed):
    return [item for item, *_ in listed]


def scored(model, people, lists):
    """Hold lists against an evaluation: hidden, an item is a hit at its own rank and at none before.

    Of tied items a score is the mean over all orders, and a list shows one of them.
    """
    for row, listed in enumerate(lists):
        person = people.select_users([row])
        assert len(listed) == K
        for rank, item in enumerate(listed, start=1):
            hidden = Interactions.from_arrays(
                person.users.ids,
                [item],
                [people.facts.high],
                catalog=people.catalog,
                people=person.users,
                facts=people.facts,
            )
            found = measure(model, person, hidden, [f"hr@{rank}", f"hr@{max(rank - 1, 1)}"])
            assert found[f"hr@{rank}"] > 0 and (rank == 1 or found[f"hr@{rank - 1}"] < 1)


def command_line(monkeypatch, *arguments):
    """Return what a verb prints; no fixture captures it, for a service is started in the same test.

    (When it is, a library's log handler closes the stream that it was given, unless that is still in place.)
    """
    monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        cli.main()
    return json.loads(shown.getvalue())


def served(model, people, folder, tmp_path, monkeypatch, *, named):
    """Yield every door's name and its lists of these people."""
    file, many, out = tmp_path / "m.discreet", tmp_path / "many.csv", tmp_path / "lists.csv"
    model.save(file)
    rated, rows = model.scorer.needs_ratings, range(people.n_users)
    names = people.users.ids.tolist() if named else [None] * people.n_users
    pairs = [oldest_first(people, row) for row in rows]
    lists = pairs if rated else [items_of(one) for one in pairs]
    frame = frame_of(people)
    frame.write_csv(many)

    yield "recommend_all", by_person(model.recommend_all(people, K), people)
    yield "recommend_all, a frame", by_person(model.recommend_all(frame, K), people)
    yield "recommend_all, a path", by_person(model.recommend_all(many, K), people)
    one_by_one = zip(lists, names, strict=True)
    yield "recommend, lists", [items_of(model.recommend(one, K, user=name)) for one, name in one_by_one]
    alone = [frame.filter(user=user) for user in people.users.ids.tolist()]
    yield (
        "recommend, frames",
        [items_of(model.recommend(one if named else one.drop("user"), K)) for one in alone],
    )

    def call(*arguments):
        return command_line(monkeypatch, "recommend", file, *arguments, "-k", K, "--json")

    call("--histories", many, "--out", out)
    yield "recommend --histories", by_person(pl.read_csv(out), people)
    if named:
        found = [call("--history", many, "--user", name)["recommendations"] for name in names]
    else:
        (tmp_path / "me.csv").write_text(alone[0].drop("user").write_csv())
        found = [call("--history", tmp_path / "me.csv")["recommendations"]]
    yield "recommend --history", [[row["item"] for row in one] for one in found]
    shards = open_shards(folder)
    parts = [part for n in range(shards.n_shards) for part in shard_lists(model, shards, n, Wanted(k=K))]
    yield "shards", by_person(pl.concat(parts), people)

    with InProcess(answering_app(file)) as service:

        def post(history, name):
            # No time has passed since: elsewhere nobody states when a list is requested.
            body = {"history": history, "k": K, "user": name, "now": 0}
            status, answer = ask_json(f"{service.url}/recommend", body)
            assert status == 200, answer
            return [one["item"] for one in answer["items"]]

        yield "POST /recommend, lists", [post(one, name) for one, name in zip(lists, names, strict=True)]
        records = [one.drop("user").rename({"timestamp": "time"}).to_dicts() for one in alone]
        yield (
            "POST /recommend, rows with times",
            [post(one, name) for one, name in zip(records, names, strict=True)],
        )
    packed = browser_vectors(model)
    if packed is not None and not named and NODE is not None:
        asked = [(one, {"k": K}) for one in lists]
        listed = device_lists(packed, model.catalog.ids.tolist(), asked)
        yield "a device", [[place["item"] for place in one] for one in listed]


@pytest.mark.parametrize("name", by_default(NAMES))
def test_a_bundle_is_made_of_the_models_that_a_refusal_names(name, model_of):
    model = model_of(name)
    can = re.split(r", | and ", bundle_parts._CAN)
    assert (browser_vectors(model) is not None) == (model.name in can), "Name it in `_CAN`, or refuse it."


@pytest.mark.parametrize("name", by_default(NAMES))
def test_newcomers_get_the_list_that_is_scored(name, model_of, newcomers, folders, tmp_path, monkeypatch):
    model = model_of(name)
    if isinstance(model.scorer, ReleasedCells):
        for history in (dict(oldest_first(newcomers, 0)), oldest_first(newcomers, 0)):
            with refuses("unknown-user"):
                model.recommend(history)
        pytest.skip("this release answers for its own people only, through every door")
    first = None
    for door, lists in served(model, newcomers, folders["newcomers"], tmp_path, monkeypatch, named=False):
        if first is None:
            first = lists
            scored(model, newcomers, lists)
        assert lists == first[: len(lists)], door


@pytest.mark.parametrize("name", by_default(NAMES))
def test_people_of_the_data_get_the_list_that_is_scored(
    name, model_of, own, timed, folders, tmp_path, monkeypatch
):
    model = model_of(name)
    if not {"users", "people"} & set(model.scorer.stored):
        pytest.skip("this release knows no user: every user is new to it")
    lists = by_person(model.recommend_all(timed, K), own)
    scored(model, own, lists)
    for door, found in served(model, own, folders["own"], tmp_path, monkeypatch, named=True):
        assert found == lists, door


@pytest.mark.parametrize("name", [*DRAWN, "ease", "item-knn", "markov-chain"])
def test_a_door_that_loses_the_times_is_noticed(name, model_of, newcomers):
    """The twin: lists of the same people without their order are not those that are scored."""
    model = model_of(name)
    kept = by_person(model.recommend_all(newcomers, K), newcomers)
    scored(model, newcomers, kept)
    lost = by_person(model.recommend_all(dataclasses.replace(newcomers, times=None), K), newcomers)
    assert lost != kept
    with pytest.raises(AssertionError):
        scored(model, newcomers, lost)
    for row, (right, wrong) in enumerate(zip(kept, lost, strict=True)):
        pairs = oldest_first(newcomers, row)
        assert items_of(model.recommend(pairs, K)) == right
        assert items_of(model.recommend(dict(pairs), K)) == wrong
