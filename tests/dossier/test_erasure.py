"""What is left of an erased user, by the ledger."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from dp_accounting import GaussianDpEvent

from command_line import rejected
from discreet import model_settings, synthesize
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.dossier.erasure import erasure
from discreet.dossier.errors import NoReleases, UnknownEntries
from discreet.follow import Following, FollowSettings
from discreet.privacy.accounting.gaussian import gaussian_multiplier
from discreet.privacy.guarantee import Assumption, Basis, Fact, Guarantee, Kind, Neighbors, Trust, Unit
from discreet.privacy.ledger.ledger import Account, Ledger
from discreet.report.guarantee_wording import condition_text

USER = Guarantee(
    epsilon=1.0,
    delta=1e-6,
    unit=Unit.USER,
    trust=Trust.JOINT,
    neighbors=Neighbors.ADD_OR_REMOVE,
    basis=Basis.PROVED,
    proof="proofs/popularity.md",
)
WHEN = datetime(2026, 11, 18, tzinfo=UTC)


def ledger(*promises):
    book = Ledger.in_memory()
    for number, promise in enumerate(promises):
        with book.spend("shop", promise, what=f"model {number}"):
            pass
    return book


def test_a_statement_repeats_the_conditions_of_the_releases():
    taken = Assumption.of(Kind.TAKEN, Fact.CATALOG, items=5)
    (found,) = erasure(ledger(USER, USER.assuming(taken)), "shop", made=WHEN).remaining
    assert found.guarantee.conditions == (taken,)
    assert found.sentence().startswith(f"If {condition_text([taken])}, ")


def test_live_releases_add_up_and_withdrawn_ones_do_not_count():
    book = ledger(USER, replace(USER, epsilon=2.0), USER)
    (all_of_them,) = erasure(book, "shop", made=WHEN).remaining
    assert all_of_them.amount[0] == pytest.approx(4.0) and all_of_them.amount[0] >= 4.0
    assert all_of_them.amount[1] == pytest.approx(3e-6)
    second = book.entries("shop")[1].id
    found = erasure(book, "shop", withdrawn=[second], made=WHEN)
    assert found.remaining[0].amount[0] == pytest.approx(2.0)
    assert [entry.id for entry in found.withdrawn] == [second] and len(found.live) == 2


def weighed(account, *promises, **rules):
    """Return a ledger with Gaussian releases in an account of weights."""
    book = Ledger.in_memory()
    book.set_budget("shop", epsilon=5.0, delta=1e-6, account=account, **rules)
    for promise in promises:
        events = [GaussianDpEvent(gaussian_multiplier(promise.epsilon, promise.delta))]
        with book.spend("shop", promise, what="model", events=events):
            pass
    return book


@pytest.mark.parametrize("account", [Account.GAUSSIAN, Account.CONCENTRATED])
def test_a_statement_adds_up_as_the_account_does(account):
    book = weighed(account, *[USER] * 3)
    found = erasure(book, "shop", made=WHEN)
    assert found.remaining[0].amount == book.balance("shop").spent
    assert found.remaining[0].amount[0] < 2.5 and found.remaining[0].amount[1] == 1e-6
    assert found.to_json()["account"] == account.value
    assert len(found.to_json()["assumes"]) == 1 + len(erasure(ledger(USER), "shop").to_json()["assumes"])
    latest = book.entries("shop")[-1].id
    fewer = erasure(book, "shop", withdrawn=[latest], made=WHEN)
    assert fewer.remaining[0].amount == weighed(account, *[USER] * 2).balance("shop").spent


def test_a_statement_counts_releases_from_before_a_new_start():
    book = weighed(Account.GAUSSIAN, USER, USER)
    book.set_budget("shop", epsilon=5.0, delta=1e-6, renewed="other users", reason="a new panel")
    assert book.balance("shop").spent.epsilon == 0
    (found,) = erasure(book, "shop", made=WHEN).remaining
    assert found.amount == weighed(Account.GAUSSIAN, USER, USER).balance("shop").spent


def test_releases_that_an_account_has_no_weight_for_are_added():
    book = ledger(USER, USER)
    book.set_budget("shop", epsilon=5.0, delta=1e-6, account=Account.GAUSSIAN, renewed="other users")
    (found,) = erasure(book, "shop", made=WHEN).remaining
    assert found.amount[0] == pytest.approx(2.0) and found.amount[0] >= 2.0


def test_accounts_of_one_user_are_a_group():
    found = erasure(ledger(USER), "shop", accounts=3, made=WHEN)
    epsilon, delta = found.remaining[0].amount
    assert epsilon == pytest.approx(3.0) and delta > 3e-6
    many = erasure(ledger(USER), "shop", accounts=100, made=WHEN)
    assert not many.is_bounded and math.isinf(many.remaining[0].amount[0])


@pytest.mark.parametrize(
    "promise",
    [
        replace(USER, unit=Unit.RATING),
        replace(USER, epsilon=math.inf, delta=0.0),
        replace(USER, simulated=True),
        replace(USER, neighbors=Neighbors.REPLACE),
    ],
    ids=["rating", "no privacy", "simulated", "replace"],
)
def test_a_release_that_bounds_no_history_is_never_called_bounded(promise):
    found = erasure(ledger(USER, promise), "shop", made=WHEN)
    assert not found.is_bounded and found.to_json()["bounded"] is False


def test_a_failed_release_counts():
    book = ledger(USER)
    with pytest.raises(RuntimeError), book.spend("shop", USER, what="fails"):
        raise RuntimeError
    assert erasure(book, "shop", made=WHEN).remaining[0].amount[0] == pytest.approx(2.0)


def test_unknown_names_and_entries_are_rejected():
    book = ledger(USER)
    with pytest.raises(NoReleases) as wrong:
        erasure(book, "elsewhere")
    assert wrong.value.facts() == {"dataset": "elsewhere", "known": ("shop",)}
    with pytest.raises(UnknownEntries) as wrong:
        erasure(book, "shop", withdrawn=[99])
    assert wrong.value.entries == (99,)


def test_one_statement_covers_a_model_a_continual_release_and_synthetic_data(discreet, tmp_path):
    """A continual release counts once, for its whole year; data drawn from a model cost nothing more."""
    book, data = tmp_path / "shop.ledger", popularity_skewed(n_users=100, n_items=40, mean_per_user=15)
    settings = FollowSettings(releases=4, epsilon=2.0, delta=1e-6)
    estimator = model_settings.estimator("user-factorization", {"epsilon": 1.0, "for_synthesis": True})
    with Ledger.open(book) as ledger:
        model = estimator.fit(data, ledger=ledger, name="shop")
        Following.start(
            tmp_path / "shop.follow", data.catalog, data.facts, settings, name="shop", ledger=ledger
        )
        before = erasure(ledger, "shop", made=WHEN)
        synthesize(model, users=20, seed=1)
        found = erasure(ledger, "shop", made=WHEN)
    assert found == before and found.is_bounded
    (all_of_them,) = found.remaining
    assert all_of_them.amount[0] == pytest.approx(3.0) and len(found.live) == 2
    code, printed, error = discreet("erase", book, "--name", "shop", "--json")
    assert code == 0, error
    assert json.loads(printed)["remaining"][0]["epsilon"] == all_of_them.amount[0]


def test_erase_writes_and_signs_a_statement(discreet, tmp_path):
    path, out, key = tmp_path / "shop.ledger", tmp_path / "statement.json", tmp_path / "key.pem"
    with Ledger.open(path) as book, book.spend("shop", USER, what="model"):
        pass
    from discreet.models import signatures

    assert discreet("erase", path, "--name", "shop", "--out", out, "--key", key)[0] == 1
    assert not out.exists(), "a statement that can't be signed was written"
    public = signatures.new_key(key)
    code, printed, error = discreet(
        "erase", path, "--name", "shop", "--reference", "R-17", "--out", out, "--key", key, "--json"
    )
    assert code == 0, error
    found = json.loads(printed)
    assert found["bounded"] and found["signed_by"] == public == signatures.signer(out)
    assert json.loads(out.read_text())["reference"] == "R-17"
    assert discreet("model", "verify", out, "--key", public)[0] == 0
    rejected(discreet("model", "verify", out, "--key", "00" * 32), "other-signer")
    out.write_text(out.read_text().replace("R-17", "R-18"))
    rejected(discreet("model", "verify", out, "--key", public), "bad-signature")
    code, printed, _ = discreet("erase", path, "--name", "shop")
    assert "plan`" not in printed.split()
    assert code == 0 and printed
    code, _, _ = discreet("erase", path, "--name", "shop", "--out", out)
    assert code == 1


def test_a_budget_is_not_a_release(tmp_path):
    with Ledger.open(tmp_path / "g.ledger") as book:
        book.set_budget("s", epsilon=5, delta=1e-6)
        with pytest.raises(NoReleases) as wrong:
            erasure(book, "s")
    assert wrong.value.known == () and "'s'. Choose" not in str(wrong.value)
