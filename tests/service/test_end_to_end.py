"""From devices through the service to a model: as accurate as the same collection without a network."""

import dataclasses

import numpy as np
import pytest

from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.core.randomness import PrivacyRandom, experiment_generator
from discreet.data.datasets.catalog import load
from discreet.papers.mixture.channel import LocalChannel
from discreet.service.client import CollectionClient
from discreet.service.refitting import fit_store


def error(model, train, test, order):
    """Return the error on held-out ratings of the people at places `order` of the model's own."""
    places = np.empty(order.size, np.int64)
    places[order] = np.arange(order.size)
    known = dataclasses.replace(train.select_users(order), users=model.scorer.people)
    found = model.predict(known, places[test.rows()], test.items)
    return float(np.sqrt(np.mean((found - test.values) ** 2)))


def through_the_service(collecting, train):
    asked = Campaign(
        name="demo",
        mechanism=LocalChannel(epsilon=1.0).mechanism(train.facts),
        catalog=train.catalog,
        max_reports=int(np.diff(train.indptr).max()),
        step=train.facts.step,
    )
    service, store = collecting(asked)
    client = CollectionClient(service.url)
    senders = []
    for person in range(train.n_users):
        span = slice(*train.indptr[person : person + 2])
        ids = train.catalog.id_at(train.items[span]).tolist()
        device = Device(asked, budget=1e6, random=PrivacyRandom.simulate(person))
        history = dict(zip(ids, train.values[span].tolist(), strict=True))
        assert client.send(device.message(history))["kept"] == len(history)
        senders.append(device.state()["sender"])
    assert store.counts() == (train.n_users, train.n_ratings)
    model = fit_store(store, "local-channel")
    return model, np.argsort(senders)


@pytest.mark.thorough
@pytest.mark.parametrize(("people", "seeds"), [(500, 5), pytest.param(2000, 6, marks=pytest.mark.slow)])
def test_people_through_the_service_teach_as_much_as_in_process(collecting, people, seeds):
    data = load("discreet-demo").select_users(np.arange(people))
    held_out = experiment_generator(3, "held out").random(data.n_ratings) < 0.1
    train, test = data.where(~held_out), data.where(held_out)
    order = np.arange(people)
    in_process = [
        error(LocalChannel(epsilon=1.0).fit(train, random=PrivacyRandom.simulate(seed)), train, test, order)
        for seed in range(seeds)
    ]
    model, senders = through_the_service(collecting, train)
    served = error(model, train, test, senders)
    mean, spread = np.mean(in_process), np.std(in_process, ddof=1)
    print(f"RMSE served {served:.4f}, in process {mean:.4f} +- {spread:.4f} ({seeds} seeds)")
    # Both are draws of one distribution, repeatable ones; five spreads, widened for an estimated mean.
    most = 5 * spread * np.sqrt(1 + 1 / seeds)
    assert abs(served - mean) < most
    # The twin: a collection at a quarter of the epsilon is told apart by the same yardstick.
    timid = LocalChannel(epsilon=0.25).fit(train, random=PrivacyRandom.simulate(seeds))
    assert abs(error(timid, train, test, order) - mean) > most
