"""What labels say of the last audit is what the kept run says, and only of what it audited."""

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from discreet import recipes
from discreet.audit import last_audit, last_audits
from discreet.audit.findings import Finding, KeptFindings
from discreet.audit.fingerprint import fingerprint
from discreet.audit.white_box.structure import ROUNDING
from discreet.recipes import MODELS, is_never_private

PRIVATE = sorted(name for name in MODELS if not is_never_private(name))
RUN = Path(__file__).parents[2] / "papers" / "audit" / "results" / "models.json"


def test_the_shipped_audits_are_those_of_the_kept_run():
    run = json.loads(RUN.read_text(encoding="utf8"))
    shipped = Path(last_audits.__file__).with_name("last_audits.json")
    assert json.loads(shipped.read_text(encoding="utf8")) == last_audits.summarized(
        run["found"], run["version"]
    )


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
WAITING = {"biases", "covariance-svd", "frank-wolfe", "projected-gradient", "user-factorization"}


@pytest.mark.parametrize("name", PRIVATE)
def test_the_audited_settings_are_the_defaults(name):
    own = {key: value for key, value in recipes.defaults(name).items() if key not in ("epsilon", "delta")}
    assert last_audits.audited_settings(name) == own, "Run papers/audit/table.py."


@pytest.mark.parametrize("name", PRIVATE)
def test_a_changed_mechanism_is_noticed(name):
    shipped = Path(last_audits.__file__).with_name("fingerprints.json")
    present = json.loads(shipped.read_text(encoding="utf8"))
    assert sorted(present) == PRIVATE
    assert present[name]["1"] == fingerprint(recipes.estimator(name, {"epsilon": 1.0})), (
        f"What {name} releases has changed, so its last audit is of an earlier form. Run "
        "papers/audit/table.py, which lets labels say so, and audit the model again."
    )


def test_fingerprints_differ_with_noise_shares_and_statistics(monkeypatch):
    from discreet.models import biases

    def found(name, **settings):
        return fingerprint(recipes.estimator(name, {"epsilon": 1.0, **settings}))

    assert found("popularity") == found("popularity")
    # Another epsilon, another kind of noise, another statistic.
    assert len({found("popularity"), found("popularity", epsilon=1.001), found("popularity", delta=0.0)}) == 3
    assert found("user-factorization") != found("user-factorization", feedback="implicit")
    before = found("biases"), found("popularity")
    mean, pilot, final = biases.SHARES
    monkeypatch.setattr(biases, "SHARES", (mean, pilot + Fraction(1, 100), final - Fraction(1, 100)))
    assert found("biases") != before[0] and found("popularity") == before[1]


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
    assert last_audits._audited(rows) == {"1": "one", "4": "four"}
    assert last_audits._audited([*rows, {"asked": 4.0}]) == {}
    assert last_audits._audited([*rows, {"asked": 4.0, "fingerprint": "another"}]) == {}
    # Labels show a bound only of the form that was audited; the others state that it was an earlier one.
    assert {name for name in PRIVATE if not last_audit(name).present} == WAITING
