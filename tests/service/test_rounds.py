"""PG-MF between devices and a server over HTTP, and `collect fit` on a store of each kind of campaign."""

import json

import numpy as np
import pytest

from discreet.collect.campaign import Campaign
from discreet.collect.device import CatalogDevice, Device
from discreet.collect.errors import (
    ClosedMeanwhile,
    DifferentCampaign,
    DifferentModel,
    EmptyRound,
    NoClosedRound,
    NoRounds,
    RoundsOver,
)
from discreet.collect.gradient_rounds import GradientCampaign, GradientDevice, kept_answers
from discreet.collect.hidden_items import CatalogCampaign
from discreet.collect.opening import open_campaign
from discreet.core.checks import DataError
from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.models.storage import load
from discreet.papers.mixture.private_gradients import GradientServer
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.service.admission import submission
from discreet.service.client import CollectionClient
from discreet.service.refitting import fit_store
from discreet.service.stores import SqliteStore, copy_store, open_store

from .servers import ask

FILMS = Vocabulary.of([f"film {number}" for number in range(8)])


def campaign(**changed):
    settings = {"epsilon": 12.0, "rounds": 3, "factors": 2, "projected": 4, **changed}
    return GradientCampaign(name="films", catalog=FILMS, low=1.0, high=5.0, **settings)


def history(user):
    return {f"film {number}": 5.0 if number % 2 == user % 2 else 1.0 for number in range(8)}


def devices(asked, count=6):
    return [GradientDevice(asked, history(n), random=PrivacyRandom.simulate(n)) for n in range(count)]


def test_rounds_over_http_give_the_model_of_rounds_in_one_process(collecting, tmp_path):
    asked = campaign()
    service, store = collecting(asked)
    client = CollectionClient(service.url)
    fetched = client.campaign()
    assert fetched.digest == asked.digest
    server, there, here = GradientServer(asked), devices(fetched), devices(asked)
    for number in range(asked.rounds):
        question = client.question()
        assert question == server.question()
        for one in there:
            state = tmp_path / "device.json"
            raw = one.answer(question)
            assert client.send(raw, state=state, kept=one.state())["kept"] == 1
            # Sent again after a lost answer: nothing is counted twice.
            assert client.send(raw)["repeated"] == 1
            assert kept_answers(asked, json.loads(state.read_text()))[number] == raw
        for one in here:
            server.receive(one.answer(question))
        server.close_round()
        assert store.close_round() == len(there)
    with pytest.raises(DataError):
        client.question()
    found, expected = fit_store(store), server.model()
    for name, array in expected.scorer.arrays().items():
        np.testing.assert_allclose(found.scorer.arrays()[name], array, rtol=1e-12)
    assert found.guarantee == asked.guarantee() and found.guarantee.epsilon == 12.0


def test_a_closed_round_takes_no_answer_and_a_copy_knows_its_round(collecting, tmp_path):
    asked = campaign()
    service, store = collecting(asked)
    client, (one, late) = CollectionClient(service.url), devices(asked, 2)
    question = client.question()
    with pytest.raises(EmptyRound):
        store.close_round()
    with pytest.raises(NoClosedRound):
        fit_store(store)
    client.send(one.answer(question))
    assert store.close_round() == 1 and store.round == 1
    assert client.send(late.answer(question))["refused"] == {"wrong round": 1}
    assert client.question() != question
    copy_store(store, tmp_path / "copy.db")
    copy = SqliteStore(tmp_path / "copy.db")
    assert copy.round == 1 and copy.counts() == store.counts()
    copy.close()
    store.close_collection()
    with pytest.raises(DataError):
        client.question()


def test_what_no_device_sends_is_rejected(collecting):
    asked = campaign()
    service, store = collecting(asked)
    good = devices(asked, 1)[0].answer(CollectionClient(service.url).question())
    client = CollectionClient(service.url)
    foreign = devices(campaign(seed=3), 1)[0].answer(campaign(seed=3).question(0, np.zeros((8, 2))))
    for wrong in (b"", good[:-1], good[:-1] + b"\x02", foreign):
        with pytest.raises(DataError):
            client.send(wrong)
    other = good[:-1] + bytes([1 - good[-1]])
    assert client.send(good)["kept"] == 1 and client.send(other)["refused"] == {"replayed": 1}
    assert store.counts().reports == 1
    # There is no page: a browser would not know what to do with a round.
    assert ask(f"{service.url}/page.js")[0] == 404


def test_rounds_have_as_much_room_as_devices_times_rounds(tmp_path):
    asked = campaign(rounds=2)
    store = SqliteStore(tmp_path / "kept.db", asked)
    store.most_senders = 1
    first, second, third = (one.answer(asked.question(0, np.zeros((8, 2)))) for one in devices(asked, 3))
    kept = [
        receipt.kept for receipt in store.take([submission(asked, raw) for raw in (first, second, third)])
    ]
    assert kept == [1, 1, 0]
    store.close_round()
    store.close()


def test_only_one_command_closes_a_round(tmp_path, monkeypatch):
    asked = campaign()
    store, other = SqliteStore(tmp_path / "kept.db", asked), SqliteStore(tmp_path / "kept.db")
    store.take([submission(asked, devices(asked, 1)[0].answer(asked.question(0, np.zeros((8, 2)))))])
    messages = store.messages

    def slow():
        yield from list(messages())
        other.close_round()

    monkeypatch.setattr(store, "messages", slow)
    with pytest.raises(ClosedMeanwhile):
        store.close_round()
    assert store.round == other.round == 1
    store.close()
    other.close()


def test_the_state_of_a_device_restores_its_answers_only():
    asked = campaign()
    (mine,) = devices(asked, 1)
    answer = mine.answer(asked.question(0, np.zeros((8, 2))))
    again = GradientDevice(asked, history(1), answers=kept_answers(asked, mine.state()))
    assert again.answer(asked.question(0, np.ones((8, 2)))) == answer and again.spent == asked.share
    twice = {**mine.state(), "answers": [answer.hex()] * 2}
    for wrong in ({}, None, [], {**mine.state(), "campaign": ""}, {**mine.state(), "answers": ["00"]}, twice):
        with pytest.raises(DifferentCampaign):
            kept_answers(asked, wrong)


KINDS = {
    "bounded-laplace": ([], "local-channel", ["blp-mog-mf"]),
    "clamped-laplace": (["--mechanism", "clamped-laplace"], "local-sgd", ["isgd"]),
    "one-bit": (["--mechanism", "one-bit"], "one-bit-input", []),
    "hide-items": (["--hide-items"], "local-nuclear", ["local-nuclear-plain"]),
    "hide-items implicit": (["--hide-items", "--implicit"], "neighbours", ["dplcf", "ldpicf"]),
    "rounds": (["--rounds", "2"], "private-gradients", ["pg-mf"]),
}


def filled(discreet, file, store, users=12):
    """Answer a campaign with devices, and keep what they send in a store."""
    asked = open_campaign(file)
    kept = open_store(str(store), asked)
    noise = PrivacyRandom.simulate(0)
    one_bit = isinstance(asked, Campaign) and asked.mechanism.high == 1.0
    for number in range(2 if isinstance(asked, GradientCampaign) else 1):
        messages = []
        for user in range(users):
            likes = {film: (value - 1) / 4 if one_bit else value for film, value in history(user).items()}
            if isinstance(asked, GradientCampaign):
                question = asked.question(number, np.zeros((8, asked.factors)))
                messages.append(GradientDevice(asked, likes, random=noise).answer(question))
            elif isinstance(asked, CatalogCampaign):
                chosen = {film: value for film, value in likes.items() if value > 1}
                value = 1.0 if asked.codes == 1 else 5.0
                messages.append(CatalogDevice(asked, random=noise).message(dict.fromkeys(chosen, value)))
            else:
                messages.append(Device(asked, random=noise).message(likes))
        receipts = kept.take([submission(asked, raw) for raw in messages])
        assert all(receipt.kept and not receipt.refused for receipt in receipts)
        if isinstance(asked, GradientCampaign):
            kept.close()
            assert discreet("campaign", "next-round", store)[0] == 0
            kept = open_store(str(store))
    kept.close()
    return asked


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
def test_collect_fit_learns_from_a_store_of_each_kind(discreet, kind, tmp_path):
    options, usual, names = KINDS[kind]
    (tmp_path / "items.txt").write_text("\n".join(FILMS.ids))
    file, store = tmp_path / "c.campaign", tmp_path / "kept.db"
    new = [
        "campaign",
        "new",
        "--items",
        tmp_path / "items.txt",
        "--name",
        "films",
        "--epsilon",
        "2",
        *options,
    ]
    assert discreet(*new, "--out", file)[0] == 0
    asked = filled(discreet, file, store)
    for model in (None, *names):
        chosen = [] if model is None else ["--model", model]
        code, said, error = discreet(
            "collect", "fit", store, "--out", tmp_path / f"{model}.d", "--json", *chosen
        )
        assert code == 0, error
        assert model is not None or json.loads(said)["model"] == usual
        fitted = load(tmp_path / f"{model}.d")
        assert fitted.guarantee.epsilon == asked.guarantee().epsilon == 2.0
        assert fitted.guarantee.unit == asked.guarantee().unit and not fitted.guarantee.conditions
        assert fitted.recommend({"film 0": fitted.facts.high}, 2)


def test_rounds_are_learned_by_their_own_model_only(tmp_path):
    store = SqliteStore(tmp_path / "kept.db", campaign())
    for model, settings in (("local-channel", {}), ("pg-mf", {"rate": 1.0})):
        with pytest.raises(DifferentModel):
            fit_store(store, model, settings)
    store.close()
    noise = BoundedLaplace(epsilon=1.0, low=1, high=5)
    plain = Campaign(name="films", mechanism=noise, catalog=FILMS, max_reports=8)
    store = SqliteStore(tmp_path / "plain.db", plain)
    with pytest.raises(NoRounds):
        store.close_round()
    store.close()
    done = campaign(rounds=1)
    store = SqliteStore(tmp_path / "done.db", done)
    store.take([submission(done, devices(done, 1)[0].answer(done.question(0, np.zeros((8, 2)))))])
    store.close_round()
    with pytest.raises(RoundsOver):
        store.close_round()
    store.close()
