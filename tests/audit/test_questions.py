"""A search by a hostile coordinator finds nothing, and finds every old break that is put back."""

import math

import pytest

from discreet.audit import questions
from discreet.audit.hostile_questions import honest_questions
from discreet.audit.questions import SearchFindings, try_question
from discreet.federated.protocols import asked
from discreet.federated.protocols.asked import ANSWERED
from discreet.federated.protocols.estimator_sums import EstimatorSums
from discreet.models.popularity import Popularity
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.papers.collection.nuclear import LocalNuclear
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.solvers.als import solve_rows
from discreet.statistics import domain as domains
from discreet.statistics import residual_moment
from discreet.statistics.item_vectors import ItemVectors

MODEL = UserFactorization(epsilon=0.1, delta=1e-6)
#: What a party's own share of the noise promises.
PROMISED = gaussian_epsilon(gaussian_multiplier(0.1, 1e-6) / math.sqrt(2), 1e-6) * (1 + 1e-6)


@pytest.fixture(scope="module")
def hostile():
    """Return all questions, made once."""
    return list(questions.questions(MODEL))


def searched(hostile, *words, every=1):
    """Try the questions whose labels hold all words."""
    found = SearchFindings()
    for one in [one for one in hostile if all(word in one.label for word in words)][::every]:
        try_question(MODEL, one, found)
    assert found.tried
    return found


def test_every_statistic_that_parties_answer_is_asked_for(hostile):
    asked_for = {one.question.fields["statistic"] for one in hostile}
    assert asked_for == {kind.__name__ for kind in ANSWERED}
    assert len(hostile) > 1000
    assert len(honest_questions()) == len(ANSWERED) + 1


@pytest.mark.thorough
def test_nothing_is_found(hostile):
    found = searched(hostile, every=23)
    assert found.leaks == {} and found.paid <= PROMISED
    assert found.accepted > 20


@pytest.mark.slow
def test_nothing_is_found_anywhere(hostile):
    found = questions.audit_questions("user-factorization", MODEL)
    assert not found.broken, found.notes


def test_a_refusal_that_hangs_on_a_row_is_found(hostile, monkeypatch):
    """Number 1, put back: a row that cannot be solved ends in an error."""
    found = searched(hostile, "ResidualMoment", "of one item 1e+09")
    assert found.leaks == {}
    monkeypatch.setattr(
        residual_moment, "solve_rows", lambda *given, finite, **how: solve_rows(*given, **how)
    )
    assert searched(hostile, "ResidualMoment", "of one item 1e+09").leaks


def test_a_statistic_without_a_bound_is_found(hostile, monkeypatch):
    """Number 2, put back: factors may be shorter than their constant."""
    assert searched(hostile, "ItemVectors", "longest=0.5").accepted == 0
    stated = {**domains.domains(ItemVectors), "longest": domains.Number(1e-9, 1e30)}
    monkeypatch.setitem(domains._known, ItemVectors, stated)
    found = searched(hostile, "ItemVectors moment", "longest=0.5")
    assert found.paid > PROMISED or found.leaks


def test_a_price_that_the_question_names_is_found(hostile, monkeypatch):
    """Number 3, put back: surplus fields are not refused, and `bound` is believed."""
    assert searched(hostile, "ItemVotes", "bound=1e-12").accepted == 0

    def believed(self, question):
        return (float(question.fields.get("bound", 1.0)) / question.fields["sigma"]) ** 2

    monkeypatch.setattr(asked, "only_fields", lambda *_: None)
    monkeypatch.setattr(EstimatorSums, "price", believed)
    found = searched(hostile, "ItemVotes", "bound=1e-12")
    assert found.paid > PROMISED or found.leaks


def test_only_models_that_learn_from_sums_have_questions():
    assert questions.has_questions(MODEL)
    assert not questions.has_questions(Popularity(epsilon=1.0, delta=0.0))
    assert not questions.has_questions(LocalNuclear(epsilon=1.0))
