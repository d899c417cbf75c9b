"""What labels say of the last audit is what the kept run says, and only of what it audited."""

import json
import re
from fractions import Fraction
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from discreet import model_settings
from discreet.audit import last_audit, last_audits
from discreet.audit.findings import Finding, KeptFindings
from discreet.audit.fingerprint import fingerprint
from discreet.audit.presets import presets
from discreet.audit.white_box.structure import ROUNDING
from discreet.model_settings import MODELS, is_never_private
from discreet.models.estimator import stored_setting

PRIVATE = sorted(name for name in MODELS if not is_never_private(name))


def subjects(epsilon):
    """Return all that is audited: every private model with its defaults, and the presets."""
    made = [
        model_settings.estimator(name, {**own, "epsilon": epsilon})
        for name, own in [*((name, {}) for name in PRIVATE), *presets()]
    ]
    return {estimator.named: estimator for estimator in made}


SUBJECTS = subjects(1.0)
RUN = Path(__file__).parents[2] / "papers" / "audit" / "results" / "models.json"


@cache
def maker():
    """Return the script that makes what is shipped of a kept run."""
    found = spec_from_file_location("table", RUN.parents[1] / "table.py")
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_shipped_audits_are_those_of_the_kept_run():
    run = json.loads(RUN.read_text(encoding="utf8"))
    shipped = Path(last_audits.__file__).with_name("last_audits.json")
    assert json.loads(shipped.read_text(encoding="utf8")) == maker().summarized(run["found"], run["version"])


def test_every_model_that_promises_something_was_audited_and_none_refuted(snapshot):
    sentences = set()
    for name in MODELS:
        found = last_audit(name)
        assert (found is None) == is_never_private(name), name
        if found is not None:
            assert found.verdict == "not refuted"
            sentences.add(re.sub(r"\d[\d.e-]*\d|\d", "#", found.sentence()))
            assert 0 < found.exact <= found.promised * (1 + ROUNDING)
    snapshot("\n".join(sorted(sentences)))


# What they release has changed since their last full audit.
WAITING: set[str] = set()


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_the_audited_settings_are_those_of_models_and_presets(name):
    own = {key: stored_setting(value) for key, value in SUBJECTS[name].settings.items()}
    own = {key: value for key, value in own.items() if key not in ("epsilon", "delta")}
    assert last_audits.audited_settings(name) == own, "Run papers/audit/table.py."


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_a_changed_mechanism_is_noticed(name):
    shipped = Path(last_audits.__file__).with_name("fingerprints.json")
    present = json.loads(shipped.read_text(encoding="utf8"))
    assert sorted(present) == sorted(SUBJECTS)
    assert present[name]["1"] == fingerprint(SUBJECTS[name]), (
        f"What {name} releases has changed, so its last audit is of an earlier form. Run "
        "papers/audit/table.py, which lets labels say so, and audit the model again."
    )


@pytest.mark.parametrize("name", sorted(set(SUBJECTS) - WAITING))
def test_a_label_names_the_audit_of_its_own_settings(name):
    own = {key: stored_setting(value) for key, value in SUBJECTS[name].settings.items()}
    found = last_audit(SUBJECTS[name].name, own)
    assert found.subject == name
    assert last_audits.unaudited(found.subject, own) == {}


def test_settings_without_an_audit_of_their_own_get_the_nearest_and_are_named():
    own = dict(last_audits.audited_settings("user-factorization"))
    # A preset with a half-life stands for any half-life and date, and one with a table for any table.
    fading = "user-factorization half_life=30.0 now=2026-01-31"
    assert last_audits.unaudited(fading, {**own, "half_life": 7.0, "now": None}) == {}
    assert last_audits.unaudited(fading, own) == {"half_life": None}
    both = {**own, "purpose": "ratings", "item_features": "films.csv", "for_synthesis": True}
    found = last_audit("user-factorization", both)
    left = last_audits.unaudited(found.subject, both)
    assert 2 <= len(left) <= 3 and left.items() <= both.items()


def test_fingerprints_differ_with_noise_shares_and_statistics(monkeypatch):
    from discreet.models import biases

    def found(name, **settings):
        return fingerprint(model_settings.estimator(name, {"epsilon": 1.0, **settings}))

    assert found("popularity") == found("popularity")
    # Another epsilon, another kind of noise, another statistic.
    assert len({found("popularity"), found("popularity", epsilon=1.001), found("popularity", delta=0.0)}) == 3
    assert found("user-factorization") != found("user-factorization", feedback="implicit")
    before = found("biases"), found("popularity")
    mean, pilot, final = biases.SHARES
    monkeypatch.setattr(biases, "SHARES", (mean, pilot + Fraction(1, 100), final - Fraction(1, 100)))
    assert found("biases") != before[0] and found("popularity") == before[1]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", [one for one in sorted(SUBJECTS) if "user-f" in one and "ratings" not in one]
)
def test_fingerprints_differ_with_decisions_by_earlier_releases(name, monkeypatch):
    """The rule that decides when pairs are bought once changed without a change of any fingerprint."""
    from discreet.models.user_factorization import votes_first

    made = [subjects(epsilon)[name] for epsilon in last_audits.EPSILONS]
    usual = [fingerprint(estimator) for estimator in made]
    monkeypatch.setattr(votes_first, "_AS_GOOD", 0.9)
    assert [fingerprint(estimator) for estimator in made] != usual


def test_kept_findings_about_another_mechanism_are_not_used_again(tmp_path):
    def finding(epsilon):
        return Finding(
            model="m", attack="a", promised=1.0, refuted=epsilon, confidence=1.0, fits=1, seconds=0.0
        )

    path = tmp_path / "run.json"
    KeptFindings(path).once("m", 1.0, "a", lambda: [finding(0.1)], fingerprint="one")
    (same,) = KeptFindings(path).once("m", 1.0, "a", lambda: [finding(0.2)], fingerprint="one")
    (other,) = KeptFindings(path).once("m", 1.0, "a", lambda: [finding(0.3)], fingerprint="two")
    assert (same.refuted, other.refuted) == (0.1, 0.3)
    (row,) = json.loads(path.read_text(encoding="utf8"))["found"]
    assert row["fingerprint"] == "two"


def test_an_audit_without_fingerprints_is_of_an_earlier_form():
    rows = [{"asked": 1.0, "fingerprint": "one"}, {"asked": 4.0, "fingerprint": "four"}]
    rows = [{**row, "by": "white box"} for row in rows]
    assert maker().audited(rows) == {"1": "one", "4": "four"}
    assert maker().audited([*rows, {"asked": 4.0, "by": "transcript"}]) == {}
    another = {"asked": 4.0, "fingerprint": "another"}
    assert maker().audited([*rows, {**another, "by": "transcript"}]) == {}
    # An older attack that sees less is kept as a record.
    assert maker().audited([*rows, {**another, "by": "file"}]) == {"1": "one", "4": "four"}
    # Labels show a bound only of the form that was audited; the others state that it was an earlier one.
    found = {name: last_audit(one.name, one.settings) for name, one in SUBJECTS.items()}
    assert {name for name, one in found.items() if not one.present or one.subject != name} == WAITING
