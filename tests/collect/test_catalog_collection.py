import math
import tracemalloc
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from discreet.collect.collector import CatalogCollector, CatalogTotals
from discreet.collect.device import CatalogDevice, collect_cells, sample_items
from discreet.collect.hidden_items import CatalogCampaign, CatalogReport, cell_mechanism, read, write
from discreet.collect.mechanisms import OpenCells
from discreet.collect.wire import ReportRefusal, ReportRefused
from discreet.core.randomness import PrivacyRandom
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.papers.collection.nuclear import LocalNuclear
from discreet.privacy.guarantee import Neighbors, Trust, Unit
from discreet.privacy.mechanisms.bounded import ModifiedLaplace
from discreet.privacy.mechanisms.cells import (
    MARGIN,
    HiddenNumbers,
    HiddenStars,
    gap_scale,
    pretending_cells,
    realized,
)
from discreet.privacy.mechanisms.randomized_response import RandomizedResponse
from discreet.testing import refuses
from evidence import cumulative, follows, samples_to_separate
from toy import toy_interactions

EPSILONS = [1e-3, 0.25, 1.0, 4.0, 12.0]
BOTH = [HiddenStars(epsilon=3.0), HiddenNumbers(epsilon=3.0, low=1.0, high=5.0, points=9)]


def campaign(mechanism=BOTH[0], items=50, answers=None):
    return CatalogCampaign(
        name="films", mechanism=mechanism, catalog=Vocabulary.of(range(items)), answers=answers
    )


def exactly_at_least(scale, fake):
    """Tell whether 1 - e^(-1/scale) >= fake, with 80 digits."""
    with localcontext(prec=80):
        return 1 - (-1 / Decimal(scale)).exp() >= Decimal(fake.numerator) / Decimal(fake.denominator)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaps_pretend_at_least_as_often_as_the_table_and_hardly_more(epsilon):
    for table in (RandomizedResponse(epsilon=epsilon, levels=5), ModifiedLaplace(epsilon=epsilon, points=3)):
        fake = table.fake()
        scale = gap_scale(fake)
        assert exactly_at_least(scale, Fraction(fake) * (1 + MARGIN))
        assert not exactly_at_least(scale, Fraction(fake) * (1 + 3 * MARGIN))


@pytest.mark.parametrize("epsilon", EPSILONS[1:])
def test_the_largest_ratio_over_all_answers_is_e_to_the_epsilon(epsilon):
    """Enumerate every pair of cells and every answer, empty cells answering as gaps make them."""
    for cell in (HiddenStars(epsilon=epsilon), HiddenNumbers(epsilon=epsilon, points=5)):
        told = cell.channel().transition * cell.keep
        rated = np.column_stack([1 - told.sum(axis=1), told])
        empty = np.concatenate([[1 - cell.fake], cell.fake * cell.pretended()])
        rows = np.vstack([empty, rated])
        worst = np.log(rows.max(axis=0) / rows.min(axis=0)).max()
        assert epsilon - 1e-6 < worst < epsilon + 1e-9


def test_marks_follow_the_gaps_that_were_drawn(monkeypatch):
    def drawn(scale, size, random):
        return np.array([0, 2, 0, 1, 50])

    monkeypatch.setattr("discreet.privacy.mechanisms.cells.geometric", drawn)
    marks = pretending_cells(2.0, 20, PrivacyRandom.simulate(0))
    assert marks.tolist() == [0, 3, 4, 6]


@pytest.mark.parametrize("place", ["first", "last"])
def test_cells_pretend_with_their_probability_and_not_a_tenth_more(place):
    fake = 0.2
    gap = gap_scale(fake)
    trials = samples_to_separate(0.1 * fake)
    marks = pretending_cells(gap, 2 * trials, PrivacyRandom.simulate(5))
    mine = np.bincount(marks[marks % 2 == (place == "last")] // 2, minlength=trials)
    assert follows(mine, cumulative([1 - fake, fake]))
    assert not follows(mine, cumulative([1 - 1.1 * fake, 1.1 * fake]))


def test_neighboring_cells_pretend_independently():
    trials = samples_to_separate(0.02)
    marks = pretending_cells(gap_scale(0.3), 2 * trials, PrivacyRandom.simulate(6))
    pairs = np.zeros(2 * trials, np.int64)
    pairs[marks] = 1
    codes = pairs.reshape(-1, 2) @ np.array([1, 2])
    assert follows(codes, cumulative([0.49, 0.21, 0.21, 0.09]))
    assert not follows(codes, cumulative([0.52, 0.18, 0.18, 0.12]))


@pytest.mark.parametrize("cell", BOTH)
def test_unbiased_numbers_have_the_rating_as_their_mean_and_the_middle_where_nothing_was_rated(cell):
    channel = cell.channel()
    np.testing.assert_allclose(channel.transition @ cell.unbiased(), channel.inputs, atol=1e-5)
    assert math.isclose(cell.pretended() @ cell.unbiased(), cell.middle, abs_tol=1e-9)
    assert math.isclose(cell.pretended().sum(), 1.0, rel_tol=1e-9)
    np.testing.assert_allclose(channel.outputs, cell.outputs(), atol=1e-9)
    with refuses("whole-catalog-needed"):
        cell.release([3.0], PrivacyRandom.simulate(0))


def test_the_scale_decides_the_mechanism():
    stars = cell_mechanism(1.0, PublicFacts(n_items=3, low=0.5, high=5.0, step=0.5))
    assert isinstance(stars, HiddenStars) and stars.levels == 10
    assert isinstance(cell_mechanism(1.0, PublicFacts(n_items=3, low=-10, high=10)), HiddenNumbers)
    assert isinstance(cell_mechanism(math.inf, PublicFacts(n_items=3, step=1.0)), OpenCells)


@pytest.mark.parametrize("cell", BOTH)
def test_the_label_states_a_cell_and_a_person(cell):
    asked = campaign(cell)
    promise = asked.guarantee()
    assert promise.definition == (Unit.RATING, Neighbors.REPLACE, Trust.LOCAL) and promise.epsilon == 3.0
    assert any("50 items: epsilon = 150" in note for note in promise.notes)
    assert asked.for_person().epsilon == 150.0 and asked.for_person().unit is Unit.USER


@pytest.mark.parametrize("total", [1.0, 30.0, 7.3])
@pytest.mark.parametrize("answers", [None, 1, 7, 49])
def test_a_total_budget_is_split_and_never_exceeded(total, answers):
    spread = CatalogCampaign.spread(total, catalog=Vocabulary.of(range(50)), answers=answers)
    cost = spread.for_person().epsilon
    assert cost <= total and math.isclose(cost, total, rel_tol=1e-12)
    CatalogDevice(spread, budget=total)
    with refuses("answer-costs-more", cost=cost):
        CatalogDevice(spread, budget=0.99 * total)


def test_secrecy_of_the_sample_would_amplify_nothing():
    """Enumerate one cell among two, one of which is asked about: a shown rating costs the whole epsilon."""
    cell = HiddenStars(epsilon=2.0)
    told = np.concatenate([[1 - cell.keep], cell.keep * cell.channel().transition[4]])
    empty = np.concatenate([[1 - cell.fake], cell.fake * cell.pretended()])
    silent = np.array([1.0, 0, 0, 0, 0, 0])
    rated, missing = (0.5 * row + 0.5 * silent for row in (told, empty))
    assert math.isclose(np.log(rated / missing).max(), 2.0, abs_tol=1e-6)


def test_samples_are_uniform():
    random = PrivacyRandom.simulate(9)
    trials = samples_to_separate(0.05)
    codes = np.array([sample_items(4, 2, random) @ np.array([4, 1]) for _ in range(trials)])
    pairs = np.unique(codes)
    assert pairs.size == 6
    places = np.searchsorted(pairs, codes)
    assert follows(places, cumulative(np.full(6, 1 / 6)))
    assert not follows(places, cumulative([0.25, 0.15, 0.15, 0.15, 0.15, 0.15]))


@pytest.mark.parametrize("cell", BOTH)
@pytest.mark.parametrize("answers", [None, 20])
def test_a_message_is_read_as_it_was_written_and_repeated_when_asked_again(cell, answers):
    asked = campaign(cell, answers=answers)
    device = CatalogDevice(asked, random=PrivacyRandom.simulate(2))
    raw = device.message({3: 5.0, 7: 1.0})
    assert device.message({9: 2.0}) == raw
    message = read(asked, raw)
    assert write(asked, message) == raw
    assert (np.diff(message.items) > 0).all() and message.codes.max(initial=0) < asked.codes
    assert (message.asked is None) == (answers is None)


def test_a_device_refuses_what_it_cannot_hold():
    with refuses("not-in-catalog", count=1, of=2):
        CatalogDevice(campaign(), budget=1e6).message({3: 5.0, 999: 1.0})
    with refuses("unusable-history"):
        CatalogDevice(campaign(), budget=1e6).message({3: math.nan})
    with refuses("broken-rule", name="mechanism", value="OpenCells"):
        campaign(OpenCells(low=1, high=5))
    with refuses("out-of-range", name="answers", value=51, least=1, most=50):
        campaign(answers=51)


def bad_messages(asked):
    sender = bytes(16)
    good = write(asked, CatalogReport(sender, None, np.array([1, 4]), np.array([0, 4])))

    def wrong(items, codes):
        return write(asked, CatalogReport(sender, None, np.array(items), np.array(codes)))

    return [
        (good[:-1], ReportRefusal.MALFORMED),
        (good + b"\0", ReportRefusal.MALFORMED),
        (good[:10], ReportRefusal.MALFORMED),
        (b"", ReportRefusal.MALFORMED),
        (b"XXXX" + good[4:], ReportRefusal.MALFORMED),
        (good[:4] + b"\x09" + good[5:], ReportRefusal.WRONG_VERSION),
        (good[:5] + bytes(32) + good[37:], ReportRefusal.WRONG_CAMPAIGN),
        (wrong([4, 4], [0, 0]), ReportRefusal.REPLAYED),
        (wrong([5, 4], [0, 0]), ReportRefusal.REPLAYED),
        (wrong([4, 50], [0, 0]), ReportRefusal.OUT_OF_RANGE),
        (wrong([1, 4], [0, 5]), ReportRefusal.OUT_OF_RANGE),
        (
            write(asked, CatalogReport(sender, np.array([1]), np.array([1]), np.array([1]))),
            ReportRefusal.MALFORMED,
        ),
    ]


def test_bad_messages_are_refused_and_counted():
    asked = campaign()
    totals, counted = CatalogTotals(asked), {}
    for raw, reason in bad_messages(asked):
        with pytest.raises(ReportRefused):
            read(asked, raw)
        assert not totals.receive(raw)
        counted[reason] = counted.get(reason, 0) + 1
        assert totals.refusals[reason] == counted[reason]
    assert totals.devices == 0 and not totals.reported.any()
    sampled = campaign(answers=2)
    foreign = CatalogReport(bytes(16), np.array([1, 4]), np.array([2]), np.array([0]))
    totals = CatalogTotals(sampled)
    assert not totals.receive(write(sampled, foreign)) and totals.refusals[ReportRefusal.OUT_OF_RANGE] == 1


@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_never_stop_the_collector(seed):
    asked = campaign()
    rng = np.random.default_rng(seed)
    good = bytearray(CatalogDevice(asked, random=PrivacyRandom.simulate(seed)).message({3: 5.0}))
    for _ in range(50):
        raw = bytearray(good)
        for place in rng.integers(0, len(raw), 3):
            raw[place] = rng.integers(256)
        CatalogTotals(asked).receive(bytes(raw[: rng.integers(0, len(raw) + 1)]))


def same(one, other):
    arrays = ("asked", "reported", "code_sums")
    counts = one.devices == other.devices and one.refusals == other.refusals
    return counts and all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)


@pytest.mark.parametrize("answers", [None, 10])
def test_merging_is_associative_and_equals_one_stream(answers):
    asked, random = campaign(answers=answers), PrivacyRandom.simulate(4)
    parts = [CatalogTotals(asked) for _ in range(3)]
    whole = CatalogTotals(asked)
    for number in range(60):
        raw = CatalogDevice(asked, random=random).message({number % 50: 4.0}) if number % 7 else b"?"
        parts[number % 3].receive(raw)
        whole.receive(raw)
    one, two, three = parts
    assert same(one.merged(two).merged(three), one.merged(two.merged(three)))
    assert same(three.merged(one).merged(two), whole) and whole.refusals[ReportRefusal.MALFORMED] == 9
    with refuses("different-totals"):
        one.merged(CatalogTotals(campaign(items=51)))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        (BOTH[0], None),
        (BOTH[1], 3),
        pytest.param(BOTH[0], 3, marks=pytest.mark.slow),
        pytest.param(BOTH[1], None, marks=pytest.mark.slow),
    ],
)
def test_totals_are_unbiased(cell, answers):
    """Half of the people rate item 0 with 5, all rate item 1 with 2, nobody rates item 2."""
    asked, random = campaign(cell, items=6, answers=answers), PrivacyRandom.simulate(8)
    totals = CatalogTotals(asked)
    for number in range(600):
        totals.receive(
            CatalogDevice(asked, random=random).message({1: 2.0} | ({0: 5.0} if number % 2 else {}))
        )
    found = totals.estimate()
    truth = np.array([0.5, 1.0, 0.0, 0.0, 0.0, 0.0]) * found.asked
    error = found.rated_error + np.sqrt(found.asked)
    assert (np.abs(found.rated - truth) < 6 * error).all()
    sums = truth * np.array([2.0, -1.0, 0, 0, 0, 0])
    assert (np.abs(found.rating_sums - sums) < 6 * (found.sum_error + 2 * np.sqrt(found.asked))).all()
    np.testing.assert_allclose(found.means()[:2], [5.0, 2.0], atol=0.4)


def test_collecting_cells_is_what_devices_do():
    data = toy_interactions()
    for cell in (HiddenStars(epsilon=2.0), HiddenNumbers(epsilon=2.0, low=1.0, high=5.0, points=9)):
        collected = collect_cells(data, cell, PrivacyRandom.simulate(3))
        reports = collected.reports
        rated = np.zeros((data.n_users, data.n_items), bool)
        rated[data.rows(), data.items] = True
        told = np.zeros_like(rated)
        told[reports.rows(), reports.items] = True
        assert told.sum() == reports.n_ratings and collected.simulated
        for share, probability in ((told[rated].mean(), cell.keep), (told[~rated].mean(), cell.fake)):
            assert abs(share - probability) < 6 / math.sqrt(1800)
    everything = collect_cells(data, OpenCells(low=1, high=5, points=5), PrivacyRandom.simulate(3)).reports
    assert np.array_equal(everything.items, data.items) and np.array_equal(everything.values, data.values)


def test_realized_probability_of_no_gap_is_zero():
    assert realized(0.0) == 0.0 and pretending_cells(0.0, 10, PrivacyRandom.simulate(1)).size == 0


def test_a_device_works_in_proportion_to_what_it_sends(monkeypatch):
    drawn = []
    honest = pretending_cells.__globals__["geometric"]

    def counted(scale, size, random):
        drawn.append(size)
        return honest(scale, size, random)

    monkeypatch.setattr("discreet.privacy.mechanisms.cells.geometric", counted)
    asked = campaign(HiddenStars(epsilon=10.0), items=10_000)
    CatalogDevice(asked, random=PrivacyRandom.simulate(1)).message({3: 5.0})
    assert sum(drawn) < 100


def test_memory_stays_flat_while_messages_stream():
    asked, random = campaign(HiddenStars(epsilon=7.0), items=2_000), PrivacyRandom.simulate(1)
    totals = CatalogTotals(asked)
    messages = [CatalogDevice(asked, random=random).message({3: 5.0}) for _ in range(50)]
    totals.receive(messages[0])
    tracemalloc.start()
    for _ in range(40):
        for raw in messages:
            totals.receive(raw)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert totals.devices == 2001 and held < 100_000


@pytest.mark.slow
def test_ten_thousand_devices_with_ten_thousand_items_stream_in_flat_memory():
    asked, random = campaign(HiddenStars(epsilon=6.0), items=10_000), PrivacyRandom.simulate(1)
    totals, rng = CatalogTotals(asked), np.random.default_rng(0)
    peaks = []
    tracemalloc.start()
    for number in range(10_000):
        history = dict.fromkeys(rng.integers(0, 10_000, 60).tolist(), 4.0)
        totals.receive(CatalogDevice(asked, random=random).message(history))
        if number % 2_500 == 2_499:
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.reset_peak()
    tracemalloc.stop()
    assert totals.devices == 10_000 and max(peaks) < peaks[0] + 2_000_000
    found = totals.estimate()
    assert abs(found.rated.sum() / 10_000 - 60) < 1.5


def test_kept_messages_teach_a_model_and_a_second_one_of_a_sender_is_refused():
    data = toy_interactions()
    asked = CatalogCampaign(name="toy", mechanism=HiddenStars(epsilon=6.0), catalog=data.catalog)
    collector, random = CatalogCollector(asked), PrivacyRandom.simulate(3)
    with refuses("nothing-kept"):
        collector.collected()
    for row in range(data.n_users):
        span = slice(*data.indptr[row : row + 2])
        ids = data.catalog.id_at(data.items[span]).tolist()
        raw = CatalogDevice(asked, random=random).message(
            dict(zip(ids, data.values[span].tolist(), strict=True))
        )
        assert collector.receive(raw) and not collector.receive(raw)
    assert collector.senders == 150 and collector.refusals == {ReportRefusal.REPLAYED: 150}
    assert not collector.receive(b"?")
    collected = collector.collected()
    told = np.zeros((150, 40), bool)
    told[collected.reports.rows(), collected.reports.items] = True
    rated = np.zeros_like(told)
    rated[data.rows(), data.items] = True
    assert told[rated].mean() > 0.95 and told[~rated].mean() < 0.05
    model = LocalNuclear(epsilon=6.0).fit_reports(collected)
    assert model.guarantee.unit is Unit.RATING and not model.guarantee.simulated
    with refuses("part-of-catalog"):
        CatalogCollector(campaign(answers=2))


def test_an_item_named_twice_is_refused_before_anything_is_drawn():
    device = CatalogDevice(campaign(), random=PrivacyRandom.simulate(4))
    with refuses("unusable-history"):
        device.message({7: 5.0, "7": 5.0})
    assert device.sent is None


def test_a_device_that_is_handed_its_message_repeats_it():
    asked = campaign()
    first = CatalogDevice(asked, budget=1e6)
    sent = first.message({7: 5.0})
    assert CatalogDevice(asked, budget=1e6, sent=first.sent).message({9: 1.0}) == sent
    assert CatalogDevice(asked, budget=1e6).message({7: 5.0}) != sent


@pytest.mark.parametrize("kind", [HiddenStars, HiddenNumbers])
def test_an_epsilon_at_which_nobody_could_answer_is_refused_at_once(kind):
    kind(epsilon=32.0)
    with refuses("broken-rule", name="epsilon", value=39.0):
        kind(epsilon=39.0)


def test_reports_that_hide_what_was_rated_keep_their_own_promise():
    """Whoever fits them: the proof and what it assumes are those of the campaign, and numbers round up."""
    campaign = CatalogCampaign(
        name="films",
        mechanism=HiddenStars(epsilon=1.0000004),
        catalog=Vocabulary.of([f"f{k}" for k in range(1000)]),
    )
    collector = CatalogCollector(campaign)
    for rating in (1.0, 5.0):
        collector.receive(CatalogDevice(campaign, budget=1e6).message({"f1": rating, "f2": 3.0}))
    fitted = LocalNuclear(epsilon=1.0000004).fit_reports(collector.collected()).guarantee
    promised = campaign.guarantee()
    assert (fitted.unit, fitted.proof) == (promised.unit, promised.proof)
    assert set(promised.assumes) <= set(fitted.assumes)
    for note in (fitted.notes[-1], promised.notes[-1]):
        assert float(note.rsplit("= ", 1)[1]) >= campaign.for_person().epsilon
