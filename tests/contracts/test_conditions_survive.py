"""A condition of a guarantee survives every route from one release to the next.

A model whose catalog was read from private data is private only if that catalog is public. No composition,
file, federation, continual release, score or synthetic copy may forget it. Each test has a twin with declared
facts, whose guarantee must be free of conditions.
"""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import discreet
from assumption_examples import CONDITIONS, conditions, stated
from discreet.core.randomness import PrivacyRandom
from discreet.evaluation.private import evaluate_privately, fit_and_evaluate
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.estimator_sums import protocol_for
from discreet.follow import FollowAgreement, FollowSettings
from discreet.privacy.guarantee import Fact, Guarantee, Kind
from discreet.report.guarantee_wording import condition_text
from discreet.synthesis.labels import summary, synthetic_label
from discreet.synthesis.making import make
from federation import toy_parts, train
from followed_years import STARS, weeks, year
from toy import toy_interactions

TAKEN, DECLARED = ("n_items", "scale"), ()
BOTH = [Fact.CATALOG, Fact.SCALE]
ROUTES = pytest.mark.parametrize(("origins", "wanted"), [(TAKEN, BOTH), (DECLARED, [])], ids=["taken", "not"])


def noise():
    return PrivacyRandom.simulate(1)


def ratings(origins):
    data = toy_interactions(n_users=120, n_items=30)
    return data.with_facts(replace(data.facts, from_file=origins))


def fitted(origins, **settings):
    return discreet.UserFactorization(epsilon=8.0, **settings).fit(ratings(origins), random=noise())


@ROUTES
def test_fitting_saving_and_loading(origins, wanted, tmp_path):
    model = fitted(origins)
    model.save(tmp_path / "m.discreet")
    for guarantee in (model.guarantee, discreet.load(tmp_path / "m.discreet").guarantee):
        assert conditions(guarantee) == wanted


@pytest.mark.few(4)
@pytest.mark.parametrize("one", CONDITIONS, ids=lambda one: f"{one.kind}-{one.fact}")
def test_every_kind_of_condition_is_saved(one, tmp_path):
    model = fitted(DECLARED)
    replace(model, guarantee=model.guarantee.assuming(one)).save(tmp_path / "m.discreet")
    assert discreet.load(tmp_path / "m.discreet").guarantee.conditions == (one,)


@ROUTES
def test_a_prior(origins, wanted, tmp_path):
    fitted(origins).save(tmp_path / "m.discreet")
    assert conditions(fitted(DECLARED, prior=str(tmp_path / "m.discreet")).guarantee) == wanted


@ROUTES
def test_composition(origins, wanted):
    taken, declared = fitted(origins).guarantee, fitted(DECLARED).guarantee
    assert conditions(taken + declared) == wanted == conditions(declared + taken)


@pytest.mark.few(1)
@ROUTES
def test_a_federation(origins, wanted):
    data, parts = toy_parts(n_items=20)
    data = data.with_facts(replace(data.facts, from_file=origins))
    parts = {name: own.with_facts(replace(own.facts, from_file=())) for name, own in parts.items()}
    protocol = protocol_for(discreet.Biases(epsilon=8.0), data.facts, SharedNoise(parties=4, missing=1))
    assert conditions(protocol.promise(data.facts)) == wanted
    assert conditions(train(protocol, parts, data).model.guarantee) == wanted


@ROUTES
def test_continual_releases(origins, wanted, tmp_path):
    followed = year(tmp_path, replace(STARS, from_file=origins))
    model = followed.add(weeks(1)[0], random=noise()).model
    assert conditions(model.guarantee) == wanted
    more = followed.add(weeks(1)[0], items=discreet.Vocabulary.of(["new"]), random=noise()).model
    assert conditions(more.guarantee) == wanted and more.facts.n_items == STARS.n_items + 1
    settings = FollowSettings(releases=2, half_life=7.0, epsilon=1.0, delta=1e-6)
    agreed = FollowAgreement(
        run="r",
        settings=settings,
        facts=replace(STARS, from_file=origins),
        noise=SharedNoise(parties=3, missing=1),
    )
    assert conditions(agreed.promise()) == wanted


@pytest.mark.few(1)
@ROUTES
def test_private_scores(origins, wanted):
    """The score of a model depends on its numbers, so the model's conditions are the score's."""
    model, declared = fitted(origins), ratings(DECLARED)
    score = evaluate_privately(model, declared, epsilon=4.0, random=noise())
    assert conditions(score.guarantee) == wanted
    together = fit_and_evaluate([discreet.Biases(epsilon=8.0)], ratings(origins), random=noise())
    assert conditions(together.guarantee) == wanted == conditions(together.models[0].guarantee)


@ROUTES
def test_synthetic_data_and_what_is_fitted_on_them(origins, wanted):
    model = fitted(origins)
    made = make(model, 40)
    label = synthetic_label(model, made)
    assert conditions(Guarantee.from_json(label["guarantee"])) == wanted
    assert label["sentence"] == summary(model.guarantee)
    again = discreet.Biases(epsilon=4.0).fit(made.data, random=noise())
    assert conditions(again.guarantee) == wanted
    origin = stated(again.guarantee)[Kind.SYNTHETIC, Fact.DATA]["origin"]
    assert origin == label["sentence"] and condition_text(model.guarantee.conditions) in origin


@ROUTES
def test_new_items(origins, wanted):
    model = fitted(origins)
    ids = [*model.catalog.ids.tolist(), "new"]
    table = {"item": ids, "length": np.arange(len(ids), dtype=float)}
    assert conditions(model.add_items(pl.DataFrame(table)).guarantee) == wanted


@ROUTES
def test_the_label_of_an_evaluation(origins, wanted):
    found = discreet.evaluate(discreet.Biases(epsilon=8.0), ratings(origins), random=noise())
    assert conditions(found.guarantee) == wanted
