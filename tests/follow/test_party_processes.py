"""Parties that follow a year from the command line: folders, daemons behind keys and sockets, Flower."""

import contextlib
import socket
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from assumption_examples import stated
from discreet.core.checks import FileError
from discreet.core.randomness import PrivacyRandom
from discreet.data.interactions import Interactions
from discreet.data.vocabulary import Vocabulary
from discreet.federated.errors import TooFewAnswers
from discreet.federated.flower.app.discreet_relay import frames
from discreet.federated.identity.agreement import COORDINATOR, KEEPER, found_federation
from discreet.federated.identity.keys import KEY, read_private_key
from discreet.federated.keeper import Keeper
from discreet.federated.noise import OwnNoise, SharedNoise
from discreet.federated.serving.party import PartyDaemon
from discreet.federated.serving.tls import SealedTransport, TlsServer, keeper_service
from discreet.federated.transport import InProcess
from discreet.follow import FollowAgreement, Following, FollowParty, FollowSettings
from discreet.follow.errors import WrongRelease
from discreet.follow.federation import (
    STATE,
    coordinated,
    declare_items,
    following,
    from_recipe,
    releases_together,
    to_recipe,
    year_of,
)
from discreet.follow.settings import ONCE
from discreet.follow.state import State
from discreet.follow.supplies import supply_from
from discreet.privacy import continual as drawing
from discreet.privacy.guarantee import Fact, Kind
from discreet.privacy.ledger.ledger import Ledger
from discreet.testing import refuses
from flower import Federation
from followed_years import CHOICES, ITEMS, STARS, batch, weeks
from ports import free_port
from toy import toy_interactions

DAY = 86_400
# Noise is taken out where this is used.
RANDOM = PrivacyRandom.simulate(0)
NAMES = ("north", "east", "south")
SETTINGS = FollowSettings(releases=4, epsilon=2.0, half_life=7.0, days=28.0)


@pytest.mark.parametrize("settings", [SETTINGS, FollowSettings(releases=1, epsilon=0.1, pace=ONCE)])
def test_a_recipe_is_read_back_as_it_was(settings):
    assert from_recipe(to_recipe(settings)) == settings
    assert from_recipe('model = "popularity"\n\n[settings]\nepsilon = 1.0\n') is None
    with refuses("bad-period-recipe", model="follow"):
        from_recipe(to_recipe(settings) + "\n[more]\n")


def founded(folder, port=1, facts=STARS):
    return found_federation(
        folder,
        recipe=to_recipe(SETTINGS),
        facts=facts,
        catalog=ITEMS,
        missing=1,
        parties=NAMES,
        addresses={COORDINATOR: "127.0.0.1:1", KEEPER: f"127.0.0.1:{port}"},
        label="spring",
    )


def write_week(folder, number, one):
    """Write every third user's rows of a week into a party's folder of new ratings."""
    rows = one.rows()
    table = pl.DataFrame(
        {
            "user": list(one.users.id_at(rows)),
            "item": list(one.catalog.id_at(one.items)),
            "rating": one.values,
        }
    )
    for place, name in enumerate(NAMES):
        own = table.filter(pl.col("user").str.slice(1).cast(pl.Int64) % 3 == place)
        (folder / f"{name}-new").mkdir(exist_ok=True)
        own.write_parquet(folder / f"{name}-new" / f"{number}.parquet")


class Members:
    """Keeper behind TLS, parties behind sockets, everything signed; only Flower is left out."""

    def __init__(self, folder, ending):
        self.folder, self.agreement, self.ending = folder, founded(folder, free_port()), ending
        keeper = Keeper(roster=list(NAMES), least=2, run=self.agreement.run)
        address, members = self.agreement.address(KEEPER), self.agreement.members()
        self._serve(TlsServer(address, folder / KEEPER, members, keeper_service(keeper)), ending)
        self.daemons = {name: self.party(name, ending) for name in NAMES}

    def restart(self, name):
        self.daemons[name].close()
        self.daemons[name] = self.party(name, self.ending)

    def party(self, name, ending, dataset="shop"):
        supply = supply_from(self.folder / f"{name}-new", None, rated=True)
        ledger = Ledger.open(self.folder / f"{name}.ledger")
        join = following(self.agreement, supply, ledger=ledger, dataset=dataset)
        return self._serve(PartyDaemon(self.folder / name, self.agreement, join), ending)

    def _serve(self, server, ending):
        threading.Thread(target=server.run, daemon=True).start()
        ending.callback(server.close)
        return server

    def coordinator(self, key=COORDINATOR):
        lines = {name: lambda raw, one=one: asked(one.path, raw) for name, one in self.daemons.items()}
        own = read_private_key(self.folder / key / KEY)
        known = {name: self.agreement.key(name) for name in NAMES}
        transport = SealedTransport(InProcess(lines), own, known)
        return coordinated(self.folder / COORDINATOR, self.agreement, transport)


def asked(path, raw):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))
        frames.send(line, {}, raw)
        return frames.receive(line)[1]


@pytest.fixture
def members(tmp_path_factory):
    # The path of a socket must be short.
    with contextlib.ExitStack() as ending:
        yield Members(Path(tmp_path_factory.mktemp("f")), ending)


def arrays(model):
    return {name: array.tolist() for name, array in model.scorer.arrays().items()}


@pytest.mark.thorough
def test_members_with_keys_follow_as_one_holder_would(members, tmp_path, monkeypatch):
    """Without noise the models are equal bit by bit, over a restart, new items and a repeated release."""
    monkeypatch.setattr(drawing, "add_discrete_gaussian", lambda *given: None)
    alone = Following.start(tmp_path / "alone.follow", ITEMS, STARS, SETTINGS)
    first, second = weeks(2)
    write_week(members.folder, 1, first)
    coordinator = members.coordinator()
    found = coordinator.release(number=1, kind="popularity")
    added = alone.add(first, kind="popularity", random=RANDOM)
    assert arrays(found.model) == arrays(added.model) and found.counted == NAMES
    assert found.model.guarantee.notes[0] == "release 1 of 4"
    again = coordinator.release(number=1, kind="popularity")
    assert arrays(again.model) == arrays(found.model) and coordinator.made == 1
    with pytest.raises(WrongRelease):
        coordinator.release(number=3)
    del coordinator
    # Files stay where they are: what entered is left out, and a party that starts again does not pay again.
    write_week(members.folder, 2, second)
    members.restart("east")
    found = members.coordinator().release(kind="popularity")
    assert arrays(found.model) == arrays(alone.add(second, kind="popularity", random=RANDOM).model)
    for name in NAMES:
        assert Ledger.open(members.folder / f"{name}.ledger").spent("shop").epsilon == 2.0
        assert len(Ledger.open(members.folder / f"{name}.ledger").entries()) == 1
    more, wider = Vocabulary.of(["i3", "new"]), replace(STARS, n_items=13)
    for member in (COORDINATOR, *NAMES):
        assert declare_items(members.folder / member, members.agreement, more) == 1
    with refuses("keeper-has-no-items"):
        declare_items(members.folder / KEEPER, members.agreement, more)
    rows = [("u1", "new", 5), ("u2", "new", 5), ("u3", "i0", 5)]
    third = batch(rows, wider, Vocabulary.of([*ITEMS.ids.tolist(), "new"]))
    write_week(members.folder, 3, third)
    found = members.coordinator().release(kind="popularity")
    added = alone.add(third, items=more, kind="popularity", random=RANDOM)
    assert arrays(found.model) == arrays(added.model) and len(found.model.catalog) == 13


def test_whoever_is_not_the_coordinator_gets_nothing(members):
    write_week(members.folder, 1, weeks(1)[0])
    with pytest.raises(TooFewAnswers):
        members.coordinator(key="north").release()
    for name in NAMES:
        assert not Following(members.folder / name / STATE).status().times
    # The twin: with its own key the coordinator does.
    assert members.coordinator().release().release == 1


def test_files_that_cannot_be_read_delay_a_release_and_lose_nothing(members):
    write_week(members.folder, 1, weeks(1)[0])
    broken = members.folder / "east-new" / "2.parquet"
    broken.write_bytes(b"not Parquet")
    with pytest.raises(TooFewAnswers):
        members.coordinator().release()
    broken.unlink()
    assert members.coordinator().release().counted == NAMES


def test_a_party_that_lost_its_state_does_not_begin_the_run_again(members):
    """Its users would enter twice, under a promise of one year."""
    write_week(members.folder, 1, weeks(1)[0])
    label = members.coordinator().release().model.guarantee
    # Somebody with another ledger could begin again, and pay; that nobody did is on the label.
    assert (Kind.BACKUP, Fact.RESTART) in stated(label)
    members.daemons["east"].close()
    (members.folder / "east" / STATE).unlink()
    with refuses("state-missing"):
        members.party("east", members.ending)
    assert len(Ledger.open(members.folder / "east.ledger").entries()) == 1
    assert not (members.folder / "east" / STATE).exists()
    # Under another name of the data, too.
    with refuses("state-missing"):
        members.party("east", members.ending, dataset="other")


def test_a_year_that_failed_to_begin_may_be_begun(tmp_path, monkeypatch):
    """It is paid once: the second start goes on with what the first one paid for."""
    agreement = FollowAgreement(run="s", settings=SETTINGS, facts=STARS, noise=OwnNoise())
    ledger = Ledger.in_memory()
    with monkeypatch.context() as broken:
        broken.setattr(State, "declare", lambda *given: (_ for _ in ()).throw(FileError("the disk is full")))
        with pytest.raises(FileError):
            FollowParty.start("a", tmp_path / "a", ITEMS, agreement, lambda release: None, ledger=ledger)
    FollowParty.start("a", tmp_path / "a", ITEMS, agreement, lambda release: None, ledger=ledger)
    assert [entry.state for entry in ledger.entries()] == ["done"]
    # Another party of the run may pay from the same ledger.
    FollowParty.start("b", tmp_path / "b", ITEMS, agreement, lambda release: None, ledger=ledger)
    (tmp_path / "b").unlink()
    with refuses("state-missing", run="s"):
        FollowParty.start("b", tmp_path / "b", ITEMS, agreement, lambda release: None, ledger=ledger)


def test_a_run_that_fits_a_model_follows_no_year(tmp_path):
    agreement = found_federation(
        tmp_path,
        recipe='model = "popularity"\n\n[settings]\nepsilon = 1.0\n',
        facts=CHOICES,
        catalog=ITEMS,
        missing=1,
        parties=NAMES,
        addresses={COORDINATOR: "127.0.0.1:1", KEEPER: "127.0.0.1:1"},
        label="fit",
    )
    assert year_of(agreement) is None
    with refuses("not-a-period"):
        declare_items(tmp_path / "north", agreement, ITEMS)
    follows = founded(tmp_path / "year")
    assert year_of(follows).settings == SETTINGS
    with refuses("no-state"):
        declare_items(tmp_path / "year" / "north", follows, ITEMS)


def timed(seed=0):
    """Return interactions of four weeks from day 100 on, one before and one after the year."""
    rng = np.random.default_rng(seed)
    pairs = rng.choice(40 * 12, 200, replace=False)
    times = (100 + rng.uniform(0, 28, 200)) * DAY
    times[0], times[1] = 3 * DAY, 200 * DAY
    users, items = [f"u{one // 12}" for one in pairs], [f"i{one % 12}" for one in pairs]
    return Interactions.from_arrays(users, items, None, times.astype(np.int64), catalog=ITEMS, facts=CHOICES)


def test_a_simulated_year_is_that_of_one_holder(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "add_discrete_gaussian", lambda *given: None)
    data = timed()
    agreed = FollowAgreement(
        run="s", settings=SETTINGS, facts=CHOICES, noise=SharedNoise(parties=3, missing=1)
    )
    *_, found = releases_together(agreed, data, begins=100.0 * DAY, random=RANDOM)
    alone = Following.start(tmp_path / "alone.follow", ITEMS, CHOICES, SETTINGS)
    week = np.maximum((data.times // DAY - 100) // 7, 0)
    for number in range(4):
        last = alone.add(data.where(week == number), random=RANDOM)
    assert arrays(found.model) == arrays(last.model) and found.release == 4
    # The twin: other weeks are noticed.
    *_, other = releases_together(agreed, data, begins=103.0 * DAY, random=RANDOM)
    assert arrays(other.model) != arrays(last.model)


def test_nobody_waits_for_flower_to_be_told_a_wrong_number(members):
    with refuses("out-of-range", name="number", value=5, least=1, most=4):
        members.coordinator().release(number=5)


@pytest.mark.slow
def test_three_parties_follow_over_flower_between_processes(tmp_path):
    data = toy_interactions(n_users=300)
    options = ("--follow", "4", "--half-life", "7d", "--year", "28d", "--implicit", "--epsilon", "8")
    federation = Federation(data, *options)
    try:
        federation.start_keeper()
        for name in NAMES:
            federation.start_party(name)
        model, told = federation.run("--seconds", "600")
        assert told["release"] == 1 and told["rounds"] == [
            {"heard": list(NAMES), "left_out": {}, "refused": {}}
        ]
        assert model.guarantee.epsilon == 8.0 and not model.guarantee.simulated
        (federation.root / "model").unlink()
        federation.kill("east")
        federation.start_party("east")
        model, told = federation.run("--seconds", "600", "--patience", "300")
        assert told["release"] == 2 and model.guarantee.notes[0] == "release 2 of 4"
        (federation.root / "model").unlink()
        again, told = federation.run("--seconds", "600", "--release", "2")
        assert told["release"] == 2 and arrays(again) == arrays(model)
        for name in NAMES:
            assert Ledger.open(federation.root / f"{name}.ledger").spent("shop").epsilon == 8.0
            assert len(Following(federation.folder / name / STATE).status().times) == 2
    finally:
        federation.close()
