"""Releases that start from files: neighboring files leave the same behind, and every old break is caught."""

import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as package
from discreet.audit import from_files
from discreet.audit.from_files import (
    CANARIES,
    ROUTES,
    SCHEMA,
    audit_budget,
    audit_files,
    audit_route,
    has_files,
    named_draw,
    names_of,
    specs,
    written,
)
from discreet.audit.white_box.recording import Player, Recorder
from discreet.core.randomness import PrivacyRandom
from discreet.data.schema import Schema
from discreet.data.vocabulary import Vocabulary
from discreet.evaluation import private as release
from discreet.model_settings import MODELS, is_never_private
from discreet.models.estimator import Estimator
from discreet.models.private_catalog import PrivateFacts
from discreet.models.user_factorization import estimator as user_factorization
from discreet.privacy.ledger.ledger import Ledger

ROUTE = {route.name: route for route in ROUTES}
TEXT, OWN, MANY = "an item id in text", "all items, and one of their own", "many items of their own"
FEW = (TEXT, OWN)
MODEL = package.UserFactorization(epsilon=1.0)


@pytest.mark.thorough
def test_no_release_from_a_file_is_refuted():
    """Of one model; all of them are among the slow tests."""
    found = audit_files("user-factorization", MODEL, canaries=FEW)
    assert found and not [finding for finding in found if finding.broken]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(name for name in MODELS if not is_never_private(name)))
def test_no_release_of_any_model_is_refuted_over_all_neighboring_files(name):
    estimator = MODELS[name](epsilon=1.0)
    variants = [estimator]
    if name == "user-factorization":
        variants.append(estimator.clone(feedback="implicit"))
        variants += [estimator.clone(purpose=purpose) for purpose in ("lists", "ratings")]
    for variant in variants:
        if has_files(variant):
            found = audit_files(name, variant)
            assert not [finding for finding in found if finding.broken]
            # Prices are sharp: what a person's row may pay, some canary nearly pays.
            if name != "frank-wolfe-printed":
                assert max(finding.refuted / finding.promised for finding in found) > 0.8


def of_the_column(monkeypatch):
    """Let the type and the order of chosen ids be those of the column."""
    monkeypatch.setattr(Vocabulary, "canonical", lambda self: self)
    monkeypatch.setattr(Vocabulary, "canonical_order", lambda self: np.arange(len(self)))


def of_the_file(monkeypatch):
    """Plan for as many items as the file has."""
    before = PrivateFacts.before

    def with_its_items(self, facts):
        return package.PublicFacts.from_json(before(self, facts).to_json() | {"n_items": facts.n_items})

    def one_for_each_thousand(self, facts):
        return [*events(self, facts)] * (1 + facts.n_items // 1000)

    events = MODELS["frank-wolfe"].events
    monkeypatch.setattr(PrivateFacts, "before", with_its_items)
    monkeypatch.setattr(MODELS["frank-wolfe"], "events", one_for_each_thousand)


def refused_unpaid(monkeypatch):
    """Refuse a file with one item before anything is paid."""
    accepted = Estimator.accepted

    def refusing(self, *given, **named):
        found = accepted(self, *given, **named)
        self._refuse_too_few(found, self.promise(found.facts))
        return found

    monkeypatch.setattr(Estimator, "accepted", refusing)


def any_prior(monkeypatch):
    """Start from whatever model there is, and say nothing."""
    monkeypatch.setattr(user_factorization, "carrying_over", lambda promise, path: promise)


def any_scored(monkeypatch):
    """Score whatever model there is."""
    monkeypatch.setattr(release, "given_models", lambda promise, models, *, are_public: promise)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("twin", "route", "canary", "model"),
    [
        (of_the_column, "catalog chosen", TEXT, "biases"),
        (of_the_column, "catalog and scale chosen", "item ids that look like numbers", "biases"),
        (of_the_file, "catalog chosen", MANY, "frank-wolfe"),
        (refused_unpaid, "catalog chosen", TEXT, "biases"),
        (any_prior, "starts from als", OWN, "user-factorization"),
        (any_prior, "starts from a fit without privacy", OWN, "user-factorization"),
        (any_prior, "starts from simulated noise", OWN, "user-factorization"),
        (any_scored, "private scores of a fit without privacy", "a new number between others", "biases"),
    ],
)
def test_every_old_break_is_caught(twin, route, canary, model, monkeypatch):
    estimator, tried = MODELS[model](epsilon=1.0), ROUTE[route]
    if twin is of_the_column:
        # A guess takes the types of IDs from all rows; files with the same words for them are compared.
        tried = replace(tried, schema=None)
        monkeypatch.setattr(Schema, "summary", lambda self: "guessed")
        monkeypatch.setattr(Schema, "remembered", lambda self: SCHEMA)
    assert not audit_route(model, estimator, tried, canaries=[canary]).broken
    twin(monkeypatch)
    found = audit_route(model, estimator, tried, canaries=[canary])
    assert found.broken and found.refuted > found.promised and (found.notes or math.isfinite(found.refuted))


def test_spending_beside_a_budget_is_caught(monkeypatch):
    assert not audit_budget("biases", package.Biases(epsilon=1.0)).broken
    monkeypatch.setattr(Ledger, "_require_budgeted", lambda *_: None)
    found = audit_budget("biases", package.Biases(epsilon=1.0))
    assert found.broken and len(found.notes) == 3


def test_only_promises_about_whole_people_are_audited_from_files():
    assert has_files(MODEL) and not has_files(package.OneBitInput(epsilon=1.0))
    assert not has_files(package.Biases(epsilon=math.inf))
    assert from_files.routes_of(package.Popularity(epsilon=1.0, delta=0))[-1].scores == "inf"


@pytest.mark.few(2)
@pytest.mark.parametrize("canary", [TEXT, "a user id in text", "a new number between others"])
def test_the_command_line_says_and_writes_the_same(canary, monkeypatch, tmp_path, capsys):
    """Through the door that users take: what is printed, the exit code and the file's bytes."""
    from discreet import cli

    route = ROUTE["catalog and scale chosen"]
    SCHEMA.write(tmp_path / "month.toml")
    fit = ["fit", "DATA", "--epsilon", "20", "--private-catalog", "--catalog-share", "0.8", "--delta", "1e-3"]
    fit += ["--schema", str(tmp_path / "month.toml")]
    _, people = next(specs())
    seen, names, recorder = [], [], Recorder()
    for lines in (people, [*people, *CANARIES[canary]]):
        file, out = written(tmp_path, lines), tmp_path / "m.discreet"
        names.append(names_of(file, route))
        recording = recorder if not seen else Player(recorder.calls, named=named_draw(route, *names))
        monkeypatch.setattr(
            PrivacyRandom, "from_os", lambda recording=recording: PrivacyRandom.recorded(0, recording)
        )
        arguments = [str(file) if word == "DATA" else word for word in fit]
        monkeypatch.setattr("sys.argv", ["discreet", *arguments, "--model", "biases", "--out", str(out)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
            raise SystemExit(0)
        shown = capsys.readouterr()
        seen.append((ended.value.code, shown.out, shown.err, out.read_bytes()))
        out.unlink()
    assert seen[0] == seen[1] and seen[0][0] == 0
