"""Read verdicts off the grid that the noise lies on: it works on the probit objective and on nothing private.

A verdict that meets the noise inside a solver must put the noise on its grid; the other verdict has no reason
to. The attacker holds the released factors and the public settings only.
"""

import dataclasses
import math

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.model_settings import MODELS, estimator, example_promise, is_never_private
from discreet.models.scorers.one_bit import binary_ratings
from discreet.models.storage import load
from discreet.papers.one_bit.estimators import OneBitObjective
from discreet.privacy.guarantee import Unit
from discreet.privacy.mechanisms.additive import Laplace
from discreet.solvers.low_rank.losses import OneBitLoss
from toy import toy_interactions

DATA = toy_interactions(n_users=20, n_items=20, per_user=12, seed=3)
# Solved to the end: one fit in thirty stops a little early at the usual tolerance and cannot be read.
READABLE = {"link": "probit", "regularization": 1e4, "scale": 1 / 3, "tolerance": 1e-12, "iterations": 500}
EXTREME = [
    {"regularization": 1e4, "tolerance": 1e-12, "iterations": 1000},
    {"regularization": 1e6, "tolerance": 1e-12, "iterations": 1000},
    {"regularization": 1e4, "scale": 1 / 3},
    {"regularization": 1e6, "scale": 0.37, "bound": 50.0, "radius": 1e6},
]


def guesses(scorer, settings, step):
    """Return for each cell the verdict that puts the noise nearer to its grid; a coin where both do alike."""
    scores = np.einsum("cf,cf->c", scorer.left[DATA.rows()], scorer.right[DATA.items])
    off = []
    for verdict in (1, -1):
        loss = OneBitLoss(
            verdicts=np.full(scores.size, verdict, np.int8),
            link=settings.link,
            scale=settings.scale,
            ridge=settings.ridge(),
            straight_beyond=settings.bound if settings.link == "probit" else math.inf,
        )
        steps = -loss.gradient(scores) / step
        off.append(np.abs(steps - np.rint(steps)))
    coin = np.random.default_rng(0).random(scores.size) < 0.5
    alike = np.abs(off[0] - off[1]) < 1e-6
    return np.where(np.where(alike, coin, off[0] < off[1]), 1, -1)


def rightly(scorer, settings, step=None):
    """Return how many of the verdicts the attack reads rightly."""
    if step is None:
        noise = Laplace(scale=settings.noise_scale(), l1_sensitivity=settings.slope_bound())
        step = 2.0 ** noise._grid(DATA.n_ratings).exponent
    return int(np.sum(guesses(scorer, settings, step) == binary_ratings(DATA, scorer.above)))


def allowed(epsilon, cells):
    """Return how many right guesses a promise allows, five deviations included."""
    chance = math.exp(epsilon) / (1 + math.exp(epsilon))
    return cells * chance + 5 * math.sqrt(cells * chance * (1 - chance))


def test_the_attack_reads_a_probit_objective_which_is_not_called_private():
    settings = OneBitObjective(epsilon=1.0, **READABLE)
    model = settings.fit(DATA)
    assert rightly(model.scorer, settings) > 0.9 * DATA.n_ratings > allowed(1.0, DATA.n_ratings)
    assert not model.guarantee.is_private and "NOT PRIVATE" in model.guarantee.label()


def test_the_attack_through_files_of_the_command_line(discreet, tmp_path):
    table = tmp_path / "ratings.csv"
    ids = DATA.catalog.id_at(DATA.items)
    lines = [
        f"{row},{item},{value:g}" for row, item, value in zip(DATA.rows(), ids, DATA.values, strict=True)
    ]
    table.write_text("\n".join(["user,item,rating", *lines]), encoding="utf8")
    found = {}
    for link in ("probit", "logistic"):
        out = tmp_path / f"{link}.discreet"
        wanted = READABLE | {"link": link}
        pairs = [word for name, value in wanted.items() for word in ("--set", f"{name}={value}")]
        asked = [
            "fit",
            str(table),
            "--model",
            "one-bit-objective",
            "--epsilon",
            "1",
            "--out",
            str(out),
            *pairs,
        ]
        code, told, error = discreet(*asked)
        assert code == 0, error
        assert ("NOT PRIVATE" in told) == (link == "probit")
        model = load(out)
        found[link] = (
            rightly(model.scorer, OneBitObjective(epsilon=1.0, **wanted)),
            model.guarantee.is_private,
        )
    assert found["probit"][0] > 0.9 * DATA.n_ratings and not found["probit"][1]
    assert found["logistic"][0] < allowed(1.0, DATA.n_ratings) and found["logistic"][1]


@pytest.mark.few(1)
@pytest.mark.parametrize("extreme", EXTREME)
def test_the_logistic_link_gives_nothing_away_at_extreme_settings(extreme):
    settings = OneBitObjective(epsilon=0.5, **extreme)
    right = sum(
        rightly(settings.fit(DATA, random=PrivacyRandom.simulate(seed)).scorer, settings) for seed in range(3)
    )
    assert right < allowed(0.5, 3 * DATA.n_ratings)


PRIVATE_VERDICTS = [
    name for name in MODELS if not is_never_private(name) and example_promise(name).unit is Unit.VALUE
]


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("name", PRIVATE_VERDICTS)
def test_nothing_that_is_called_private_can_be_read(name, link):
    settings = estimator(name, {"epsilon": 0.5})
    if not hasattr(settings, "link") or settings.answers_in_process:
        pytest.skip("it releases no matrix")
    settings = dataclasses.replace(settings, link=link)
    if math.isinf(settings.promise(DATA.facts).epsilon):
        pytest.skip("it is not called private")
    attacker = OneBitObjective(epsilon=0.5, link=link, regularization=1e4)
    for exponent in (-21, -20, -10):
        model = settings.fit(DATA, random=PrivacyRandom.simulate(1))
        assert rightly(model.scorer, attacker, 2.0**exponent) < allowed(0.5, DATA.n_ratings)
