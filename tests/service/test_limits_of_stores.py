"""How many senders a store takes about whole catalogs, and which model a page may use."""

import asyncio
from types import SimpleNamespace

import pytest
from fastapi import FastAPI

from discreet.collect.device import CatalogDevice, Device
from discreet.collect.wire import ReportRefusal
from discreet.data.vocabulary import Vocabulary
from discreet.service.admission import submission
from discreet.service.collect_app import _add_model
from discreet.service.limits import RefusedError
from discreet.service.publishing import ModelShelf
from discreet.service.stores import open_store


def test_new_senders_of_whole_catalogs_stop_at_the_limit(store_url, shelf):
    sent = [submission(shelf, CatalogDevice(shelf, budget=100.0).message({3: 5.0})) for _ in range(4)]
    store = open_store(store_url, shelf)
    store.most_senders = 2
    # In one batch, and then one by one: what a batch adds counts while it is taken.
    together = store.take(sent[:3])
    assert [receipt.kept for receipt in together] == [1, 1, 0]
    assert together[2].refused == {ReportRefusal.TOO_MANY_SENDERS: 1}
    (late,), (known,) = store.take(sent[3:]), store.take(sent[:1])
    assert late.kept == 0 and late.refused == {ReportRefusal.TOO_MANY_SENDERS: 1}
    assert known.repeated == 1 and not known.refused
    assert store.counts() == (2, 2)
    store.close()


def test_services_of_one_store_share_the_limit(store_url, films):
    stores = [open_store(store_url, films) for _ in range(2)]
    for store in stores:
        store.most_senders = 5
    kept = sum(
        stores[number % 2].take([submission(films, Device(films).message({"film 3": 5.0}))])[0].kept
        for number in range(12)
    )
    assert kept == 5 and stores[0].counts() == (5, 5)
    for store in stores:
        store.close()
    # What was written without the count, by an earlier version for instance, counts from the next start on.
    again = open_store(store_url)
    with again._transaction() as transaction:
        transaction.put("senders", b"0")
    again.close()
    again = open_store(store_url)
    again.most_senders = 5
    assert again.take([submission(films, Device(films).message({"film 3": 5.0}))])[0].kept == 0
    again.close()


@pytest.mark.parametrize(("catalog", "fits"), [(range(30), True), (range(31), False)])
def test_a_page_gets_vectors_of_its_own_catalog_only(shelf, catalog, fits):
    """Places in another list would name other items."""
    published = SimpleNamespace(
        model=SimpleNamespace(catalog=Vocabulary.of(catalog)),
        vectors=b"vectors",
        file=b"",
        label=b"{}",
        digest="name",
    )
    store = SimpleNamespace(campaign=shelf, is_closed=False)
    app = FastAPI()
    _add_model(
        app, store, SimpleNamespace(newest=lambda: published, required=lambda: published), lambda _: None
    )
    ask = {route.path: route.endpoint for route in app.routes}
    assert asyncio.run(ask["/health"]())["vectors"] == ("name" if fits else None)
    if fits:
        assert asyncio.run(ask["/model/vectors"](None)).body == b"vectors"
    else:
        with pytest.raises(RefusedError) as caught:
            asyncio.run(ask["/model/vectors"](None))
        assert caught.value.status == 404


def test_before_the_first_model_there_are_no_vectors(shelf):
    app = FastAPI()
    _add_model(app, SimpleNamespace(campaign=shelf, is_closed=False), ModelShelf(None), lambda _: None)
    ask = {route.path: route.endpoint for route in app.routes}
    assert asyncio.run(ask["/health"]())["vectors"] is None
    with pytest.raises(RefusedError) as caught:
        asyncio.run(ask["/model/vectors"](None))
    assert caught.value.status == 404
