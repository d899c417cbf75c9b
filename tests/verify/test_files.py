"""Files that carry certificates: models, continual releases, and synthetic tables, genuine and forged."""

import copy
import json
import sqlite3
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from discreet_verify import main

import discreet
from discreet.collect.campaign import Campaign
from discreet.collect.collector import CatalogCollector, Collector
from discreet.collect.device import CatalogDevice, Device
from discreet.collect.gradient_rounds import GradientCampaign
from discreet.collect.hidden_items import CatalogCampaign, cell_mechanism
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.federated.simulation import simulate
from discreet.model_settings import MODELS, estimator, is_never_private
from discreet.models.storage import _digest, read_label
from discreet.papers.collection.nuclear import LocalNuclear
from discreet.papers.dpimf.neighbors import ItemNeighbors
from discreet.papers.mixture.channel import LocalChannel
from discreet.papers.mixture.private_gradients import GradientServer
from discreet.papers.mixture.sgd import LocalSgd
from discreet.privacy.mechanisms.local import rating_mechanism
from discreet.synthesis.labels import write_synthetic
from discreet.synthesis.making import make
from followed_years import CHOICES, STARS, batch, weeks, year
from toy import toy_interactions
from verify.certificates import sealed

DATA = toy_interactions(seed=2)
FILMS = Vocabulary.of([f"film {number}" for number in range(10)])


def verdict(path, capsys):
    capsys.readouterr()
    code = main([str(path)])
    out = capsys.readouterr().out
    assert out.startswith("certified" if code == 0 else "rejected")
    return code, out


def forge(path, change, *, digests=True):
    """Rewrite the label of a model file, with digests that fit."""
    with zipfile.ZipFile(path) as archive:
        label, arrays = json.loads(archive.read("label.json")), archive.read("arrays.npz")
    change(label)
    if digests:
        if "certificate" in label:
            label["certificate"] = sealed(label["certificate"])
        label.pop("digest")
        label["digest"] = _digest(label, arrays)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("label.json", json.dumps(label))
        archive.writestr("arrays.npz", arrays)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.discreet"
    fitted = discreet.UserFactorization(epsilon=1.0, delta=1e-6).fit(DATA)
    assert fitted.certificate is not None
    fitted.save(path)
    return path


@pytest.mark.parametrize("name", ["biases", "covariance-svd"])
def test_a_model_of_parties_with_shared_noise_is_certified(name, tmp_path, capsys):
    path, noise = tmp_path / "parties.discreet", SharedNoise(parties=4, missing=1)
    protocol = protocol_for(estimator(name, {"epsilon": 1.0, "delta": 1e-6}), DATA.facts, noise)
    simulate(protocol, DATA, 4).model.save(path)
    assert verdict(path, capsys)[0] == 0
    # Noise that only the one party more would complete proves nothing.
    forge(path, lambda label: [one.update(honest=2) for one in label["certificate"]["releases"]])
    assert verdict(path, capsys)[0] != 0


def test_a_model_is_certified_and_keeps_its_certificate(model, tmp_path, capsys):
    assert verdict(model, capsys)[0] == 0
    again = tmp_path / "again.discreet"
    discreet.load(model).save(again)
    assert verdict(again, capsys)[0] == 0
    assert read_label(again)["certificate"] == read_label(model)["certificate"]


@pytest.mark.few(6)
@pytest.mark.parametrize("name", [name for name in MODELS if not is_never_private(name)])
def test_a_file_of_every_private_model_is_certified(name, tmp_path, capsys):
    path = tmp_path / "m.discreet"
    fitted = estimator(name, {"epsilon": 4.0}).fit(DATA)
    fitted.save(path)
    code, out = verdict(path, capsys)
    assert code == 0, out
    claim = fitted.certificate["claim"]
    assert claim["epsilon"] == 4 and sum(one["count"] for one in fitted.certificate["releases"]) >= 1
    # The claim is tight: the same releases don't prove 3% less.
    forge(path, lambda label: tighten(label, Fraction(97, 100)))
    assert verdict(path, capsys)[0] == 1


def test_answers_after_a_fit_are_the_releases_that_its_certificate_lists(tmp_path, capsys):
    fitted = estimator("one-bit-output", {"epsilon": 1.0, "cells": 3}).fit(DATA)
    (listed,) = fitted.certificate["releases"]
    assert listed["count"] == 3
    places = np.arange(3)
    fitted.scorer.predict(DATA, 0 * places, places)
    answered = [entry.release for entry in fitted.scorer.vault._session.log]
    assert answered == [{**listed, "count": 1}] * 3
    fitted.save(tmp_path / "m.discreet")
    assert verdict(tmp_path / "m.discreet", capsys)[0] == 0


def reports_on_stars(noise):
    """Return a campaign about ratings, its collector, and a device."""
    mechanism = rating_mechanism(noise, epsilon=4.0, low=1.0, high=5.0, points=9)
    return Campaign(name="films", mechanism=mechanism, catalog=FILMS, max_reports=10), Collector, Device


def reports_that_hide_items(high, step):
    """Return a campaign that also hides which items a user rated, its collector, and a device."""
    mechanism = cell_mechanism(4.0, PublicFacts(n_items=10, low=1.0, high=high, step=step))
    return CatalogCampaign(name="films", mechanism=mechanism, catalog=FILMS), CatalogCollector, CatalogDevice


CAMPAIGNS = {
    "bounded Laplace": (LocalChannel, lambda: reports_on_stars("bounded-laplace")),
    "clamped Laplace": (LocalSgd, lambda: reports_on_stars("clamped-laplace")),
    "hidden interactions": (ItemNeighbors, lambda: reports_that_hide_items(1.0, None)),
    "hidden stars": (LocalNuclear, lambda: reports_that_hide_items(5.0, 1.0)),
    "hidden numbers": (LocalNuclear, lambda: reports_that_hide_items(5.0, None)),
}


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_model_of_a_campaign_is_certified(name, tmp_path, capsys):
    """Devices made the releases, so the fit spends nothing; the certificate is about one report."""
    model, make = CAMPAIGNS[name]
    campaign, collector, device = make()
    kept, random, path = collector(campaign), PrivacyRandom.simulate(1), tmp_path / "m.discreet"
    high = campaign.facts.high
    for user in range(40):
        ratings = {f"film {item}": min(1.0 + (user + item) % 5, high) for item in range(8)}
        kept.receive(device(campaign, random=random).message(ratings))
    model(epsilon=4.0).fit_reports(kept.collected()).save(path)
    code, out = verdict(path, capsys)
    assert code == 0, out
    forge(path, lambda label: tighten(label, Fraction(97, 100)))
    assert verdict(path, capsys)[0] == 1


def test_a_model_of_rounds_of_bits_is_certified_for_all_rounds(tmp_path, capsys):
    campaign = GradientCampaign(name="bits", epsilon=4.0, rounds=5, catalog=FILMS, low=1.0, high=5.0)
    path = tmp_path / "m.discreet"
    GradientServer(campaign).model().save(path)
    code, out = verdict(path, capsys)
    assert code == 0, out
    forge(path, lambda label: label["certificate"]["releases"][0].update(count=6))
    assert verdict(path, capsys)[0] == 1


def test_what_was_not_checked_is_listed(model, capsys):
    """A forger who removes assumptions can't be found out without a signature, so the command lists them."""
    stated = [one["text"] for one in read_label(model)["guarantee"]["assumes"]]
    _, out = verdict(model, capsys)
    assert stated and all(json.dumps(one) in out for one in stated)
    Path(f"{model}.sig").write_bytes(b"anything")
    assert verdict(model, capsys)[1].splitlines()[-1] != out.splitlines()[-1]
    forge(model, lambda label: label["guarantee"].update(assumes=[]))
    code, out = verdict(model, capsys)
    assert code == 0 and len(out.splitlines()) == 3 and not any(one in out for one in stated)


def tighten(label, factor):
    label["guarantee"]["epsilon"] *= float(factor)
    label["certificate"]["claim"]["epsilon"] = str(Fraction(4) * factor)


FORGERIES = {
    "a smaller epsilon": lambda label: label["guarantee"].update(epsilon=0.5),
    "a smaller delta": lambda label: label["guarantee"].update(delta=1e-9),
    "another unit": lambda label: label["guarantee"].update(unit="rating"),
    "other neighbors": lambda label: label["guarantee"].update(neighbours="replace"),
    "users who trust nobody": lambda label: label["guarantee"].update(trust="local"),
    "an unknown trust model": lambda label: label["guarantee"].update(trust="everyone"),
    "simulated noise": lambda label: label["guarantee"].update(simulated=True),
    "no certificate": lambda label: label.pop("certificate"),
    "a claim that the releases do not prove": lambda label: (
        label["guarantee"].update(epsilon=0.5),
        label["certificate"]["claim"].update(epsilon="1/2"),
    ),
    "a release twice": lambda label: label["certificate"]["releases"].append(
        copy.deepcopy(label["certificate"]["releases"][-1])
    ),
    "a group": lambda label: label["certificate"]["claim"].update(people=2),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_label_is_rejected_even_with_digests_that_fit(name, model, capsys):
    forge(model, FORGERIES[name])
    assert verdict(model, capsys)[0] == 1


def test_a_change_without_the_digest_is_rejected(model, capsys):
    forge(model, lambda label: label.update(name="other"), digests=False)
    assert verdict(model, capsys)[0] == 1


def test_simulated_noise_and_no_noise_are_rejected(tmp_path, capsys):
    simulated, plain = tmp_path / "s.discreet", tmp_path / "p.discreet"
    discreet.UserFactorization(epsilon=1.0).fit(DATA, random=PrivacyRandom.simulate(1)).save(simulated)
    discreet.UserFactorization(epsilon=float("inf")).fit(DATA).save(plain)
    assert verdict(simulated, capsys)[0] == 1 and verdict(plain, capsys)[0] == 1


def test_a_chosen_catalog_and_scale_are_releases_of_the_certificate(tmp_path, capsys):
    path = tmp_path / "m.discreet"
    chosen = {"select_items": discreet.PrivateCatalog(epsilon=8.0, delta=1e-2)}
    fitted = discreet.UserFactorization(epsilon=1.0).fit(DATA, **chosen)
    fitted.save(path)
    kinds = {one["mechanism"] for one in fitted.certificate["releases"]}
    assert "threshold-selection" in kinds
    assert verdict(path, capsys)[0] == 0


def test_synthetic_data_carry_the_certificate_of_their_model(tmp_path, capsys):
    fitted = discreet.UserFactorization(epsilon=1.0, for_synthesis=True).fit(DATA)
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"table.{suffix}"
        write_synthetic(fitted, make(fitted, seed=1), path)
        assert verdict(path, capsys)[0] == 0
        path.write_bytes(path.read_bytes() + b"\n")
        assert verdict(path, capsys)[0] == 1


@pytest.mark.parametrize("facts", [STARS, CHOICES], ids=["ratings", "interactions"])
def test_a_continual_release_and_its_models_are_certified(facts, tmp_path, capsys):
    followed = year(tmp_path, facts)
    for one in weeks(2):
        followed.add(one if facts is STARS else batch([(f"u{k}", f"i{k}", 1) for k in range(12)], facts))
    path = tmp_path / "m.discreet"
    followed.model().save(path)
    assert verdict(path, capsys)[0] == 0
    assert verdict(followed.path, capsys)[0] == 0


def test_a_simulated_continual_release_is_rejected(tmp_path, capsys):
    followed = year(tmp_path)
    followed.add(weeks(1)[0], random=PrivacyRandom.simulate(1))
    assert verdict(followed.path, capsys)[0] == 1


def test_a_period_with_more_releases_than_its_certificate_is_rejected(tmp_path, capsys):
    followed = year(tmp_path)
    for one in weeks(2):
        followed.add(one)
    assert verdict(followed.path, capsys)[0] == 0
    with sqlite3.connect(followed.path) as connection:
        for number in range(100, 106):
            connection.execute(
                f"INSERT INTO releases SELECT {number}, time, 0, counts, totals, level FROM releases LIMIT 1"
            )
    assert verdict(followed.path, capsys)[0] == 1


def test_private_scores_are_certified(tmp_path, capsys):
    model = discreet.Popularity(epsilon=1.0).fit(DATA)
    score = discreet.evaluate_privately(model, DATA, epsilon=0.5)
    both = [discreet.Popularity(epsilon=1.0), discreet.Biases(epsilon=1.0)]
    together = discreet.fit_and_evaluate(both, DATA)
    whole = {"guarantee": together.guarantee.to_json(), "certificate": together.certificate}
    path = tmp_path / "scores.json"
    for record in (score.to_json(), whole):
        path.write_text(json.dumps(record))
        assert verdict(path, capsys)[0] == 0
        forged = copy.deepcopy(record)
        forged["certificate"]["releases"][-1]["count"] += 1
        forged["certificate"] = sealed(forged["certificate"])
        path.write_text(json.dumps(forged))
        assert verdict(path, capsys)[0] != 0
