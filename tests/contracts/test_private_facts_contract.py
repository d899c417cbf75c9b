"""What every choice of facts must hold to; a new one is found by itself and fails until it has an example."""

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

import discreet
from budgets import budget
from discreet.audit.white_box.costs import price
from discreet.audit.white_box.recording import Player, Recorder
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.interactions import Interactions
from discreet.models import private_catalog
from discreet.models.private_catalog import USUAL_SCALES, PrivateCatalog, PrivateFacts, PrivateScale
from discreet.privacy.accounting.accountant import delta_at, epsilon_at
from discreet.privacy.session import Session
from discreet.statistics.domain import Held
from discreet.statistics.statistic import Part, Statistic

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "PrivateCatalog": {"epsilon": 1.0, "delta": 1e-6},
    "PrivateScale": {"epsilon": 0.5},
    "PrivateFacts": {
        "catalog": PrivateCatalog(epsilon=1.0, delta=1e-6),
        "scale": PrivateScale(epsilon=0.5),
    },
}


def discovered():
    return {
        name: kind
        for name, kind in inspect.getmembers(private_catalog, inspect.isclass)
        if kind.__module__ == private_catalog.__name__
        and (hasattr(kind, "choose") or hasattr(kind, "narrowed"))
    }


NAMES = sorted(discovered())


def made(name):
    return discovered()[name](**EXAMPLES[name])


def dataset(extra=()):
    """Return people on a scale to be chosen, and one more with these ratings of the first items."""
    rows = [[1.0 + (row + item) % 5 for item in range(8)] for row in range(1500)]
    rows += [list(extra)] if extra else []
    users = [row for row, ratings in enumerate(rows) for _ in ratings]
    items = [item for ratings in rows for item in range(len(ratings))]
    values = [value for ratings in rows for value in ratings]
    return Interactions.from_arrays(users, items, values, catalog=discreet.Vocabulary.of(range(8)))


STRANGERS = [(100.0,), (0.0, 1.0), (5.0,) * 8, (1e30, -1e30)]


def paid(subject, extra):
    """Return what a choice costs between the worlds without and with one more person, and both outcomes."""
    recorder = Recorder()
    here = subject(dataset(), PrivacyRandom.recorded(1, recorder))
    player = Player(recorder.calls)
    there = subject(dataset(extra), PrivacyRandom.recorded(1, player))
    player.finish()
    return price(recorder.calls, player.calls), here, there


def choosing(one):
    """Return a function of data and noise that makes a choice with exactly its own budget."""

    def subject(data, random):
        session = Session.open(data, budget(one.epsilon, one.delta), random)
        if isinstance(one, PrivateFacts):
            return one.narrowed(session, data)
        return one.choose(session)

    return subject


def test_every_choice_has_an_example():
    assert sorted(EXAMPLES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_is_final_and_names_a_proof(name):
    kind = discovered()[name]
    assert getattr(kind, "__final__", False) and kind.__dataclass_params__.frozen
    assert all(entry.kw_only for entry in dataclasses.fields(kind))
    section = re.search(r"^Guarantee\n((?:    .*\n?|\n)+)", inspect.getdoc(kind), flags=re.MULTILINE)
    notes = re.findall(r"proofs/\w+\.md", section.group(1))
    assert notes and all(name in (ROOT / note).read_text(encoding="utf-8") for note in notes)


@pytest.mark.parametrize("name", NAMES)
def test_its_events_cost_what_it_says(name):
    one = made(name)
    assert epsilon_at(one.events(), one.delta) <= one.epsilon
    assert delta_at(one.events(), one.epsilon) <= one.delta
    assert epsilon_at([*one.events(), *one.events()], 2 * one.delta) > 1.2 * one.epsilon


def test_facts_before_a_choice_are_the_same_for_all_data():
    few = PublicFacts(n_items=3, low=1, high=5, from_file=("scale", "n_items"))
    many = dataclasses.replace(few, n_items=8000, low=-7, high=30)
    both = made("PrivateFacts")
    assert both.before(few) == both.before(many)
    catalog = dataclasses.replace(both, scale=None)
    declared = dataclasses.replace(few, from_file=("n_items",))
    assert catalog.before(declared) == catalog.before(dataclasses.replace(declared, n_items=8000))


def test_a_chosen_catalog_has_an_order_of_its_own():
    """Also what was learned of its items follows that order: users who come first must not decide it."""
    data = dataset()
    data = data.with_facts(dataclasses.replace(data.facts, low=0.0, high=100.0, from_file=()))
    turned = data.select_items(np.arange(data.n_items)[::-1])
    catalogs, rows = [], []
    for one in (data, turned):
        session = Session.open(one, budget(30.0, 1e-6), PrivacyRandom.simulate(0))
        chosen = PrivateFacts(catalog=PrivateCatalog(epsilon=20.0, delta=1e-6)).narrowed(session, one)
        catalogs.append(chosen.catalog.ids.tolist())
        ids = chosen.catalog.id_at(chosen.items).tolist()
        rows.append(set(zip(chosen.rows().tolist(), ids, chosen.values.tolist(), strict=True)))
        assert len(chosen.catalog) > 2
    assert catalogs[0] == catalogs[1] and rows[0] == rows[1]
    assert data.catalog.ids.tolist() != turned.catalog.ids.tolist(), "twin"


@pytest.mark.few(6)
@pytest.mark.parametrize("extra", STRANGERS)
@pytest.mark.parametrize("name", NAMES)
def test_one_person_moves_it_by_no_more_than_it_promises(name, extra):
    """Told the same, both worlds choose the same; what their draws differ by is the price."""
    one = made(name)
    cost, here, there = paid(choosing(one), extra)
    assert cost.epsilon(one.delta) <= one.epsilon
    if isinstance(here, Interactions):
        here, there = here.facts, there.facts
    assert np.array_equal(here, there)


def test_a_fit_with_choices_publishes_what_its_draws_tell_and_nothing_else():
    chosen = EXAMPLES["PrivateFacts"]

    def subject(data, random):
        model = discreet.Biases(epsilon=1.0).fit(
            data, select_items=chosen["catalog"], select_scale=chosen["scale"], random=random
        )
        return model.facts, model.catalog.ids.tolist(), model.guarantee, model.scorer.arrays()

    for extra in STRANGERS:
        cost, here, there = paid(subject, extra)
        assert here[:3] == there[:3] and here[0].high == 5.0
        for name, array in here[3].items():
            np.testing.assert_array_equal(array, there[3][name])
        assert cost.pure <= 0.5 and cost.epsilon(2e-6) <= here[2].epsilon == 2.5


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Loud(Statistic):
    """Let every rating vote: what the suite must reject."""

    scales: Annotated[tuple, Held()]

    @property
    def parts(self):
        return (Part("votes", (len(self.scales) + 1,), bits=0, norm="l1"),)

    def _add(self, block, sums):
        sums[0][2] += block.items.size


def test_a_choice_in_which_every_rating_votes_is_rejected(monkeypatch):
    monkeypatch.setattr(private_catalog, "ScaleVotes", Loud)
    cost, _, _ = paid(choosing(made("PrivateScale")), (5.0,) * 8)
    assert cost.pure > 0.5 * 7


def test_a_scale_read_off_the_data_is_rejected():
    """The twin: the largest rating as it is stands in the file though both worlds were told the same."""
    _, here, there = paid(lambda data, _: data.facts.high, (100.0,))
    assert here != there


def test_scales_are_listed_by_width():
    widths = [high - low for low, high in USUAL_SCALES]
    assert widths == sorted(widths)
