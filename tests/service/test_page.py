"""The page in a real browser: answers are drawn once, shown before they are sent, and sent as shown."""

import json

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.collect import wire
from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.collect.hidden_items import read as read_catalog
from discreet.collect.mechanisms import decode
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.service.admission import submission, unseal
from discreet.service.refitting import fit_store
from evidence import cumulative, follows, gap, samples_to_separate
from service.browser import LOOKS, cards, needs_browser, rate
from service.servers import ask_json, until

pytestmark = needs_browser

# Minus the log of 1e-9: how surprising an honest sample may be.
SURE = 20.7


def shown(campaign, code):
    return f"{float(decode(campaign.mechanism, [code])[0]):.4g}"


def test_rate_look_send_and_find_the_row(clean, collecting, films):
    service, store = collecting(films)
    page = clean.open(service.url)
    assert "by a factor of at most about 2.7" in page.inner_text("#promise")
    # Which items were answered about is not hidden, and the first lines say so.
    assert "can see which items you rated" in page.inner_text("#seen")
    assert page.inner_text("#left") == "Privacy cost: 0 of your limit of 20, including answers not sent yet."
    assert page.query_selector("#found button") is None and page.is_hidden("#few")
    assert "any rating could have led to it" in page.inner_text("#outbox-about")
    rate(page, "film 7", 4)
    rate(page, "film 3", 1)
    before = cards(page)
    assert list(before) == ["film 3", "film 7"] and before["film 7"][0] == "4 of 5 stars"
    assert store.counts() == (0, 0) and clean.posts == []
    page.click("#send")
    page.wait_for_selector("#status:text('stored 2 of your answers')")
    rows = {films.catalog.ids[row.item]: shown(films, row.code) for row in store.reports()}
    assert rows == {title: card[1] for title, card in before.items()}
    (body,) = clean.posts
    assert len(body) == 512 and wire.read(films, unseal(body)).items == (3, 7)
    assert {card[2] for card in cards(page).values()} == {"sent"}
    assert page.query_selector("#answers button") is None


def test_a_reload_and_a_second_tab_draw_nothing_new(clean, collecting, films):
    service, store = collecting(films)
    page = clean.open(service.url)
    for number in range(5):
        rate(page, f"film {number}", 5)
    before = cards(page)
    page.reload()
    page.wait_for_selector("#answers li")
    assert cards(page) == before
    other = clean.open(service.url)
    other.wait_for_selector("#answers li")
    assert cards(other) == before
    rate(other, "film 3", 1)
    other.wait_for_selector("#answers :text('1 of 5 stars')")
    assert {title: card[1] for title, card in cards(other).items()} == {
        t: card[1] for t, card in before.items()
    }
    # The first tab hears of it, and both send at once.
    page.wait_for_selector("#answers :text('1 of 5 stars')")
    page.evaluate("document.getElementById('send').click()")
    other.evaluate("document.getElementById('send').click()")
    # Whichever is faster says so; for the other one nothing is left.
    for tab in (page, other):
        tab.wait_for_selector("#status:text-matches('Sent|Nothing is left')")
        tab.wait_for_function("document.querySelectorAll('#answers button').length === 0")
    assert any("Sent" in tab.inner_text("#status") for tab in (page, other))
    assert store.counts() == (1, 5)


def test_two_tabs_that_rate_at_once_keep_one_answer(clean, collecting, films):
    service, _ = collecting(films)
    tabs = [clean.open(service.url) for _ in range(2)]
    script = """async () => {
        const { openKeeping } = await import("/page/keeping.js");
        const { Person } = await import("/page/person.js");
        const { openCampaign } = await import("/device/device.js");
        const bytes = new Uint8Array(await (await fetch("/campaign")).arrayBuffer());
        const person = new Person(await openKeeping(), await openCampaign(bytes));
        globalThis.person = person;
        globalThis.rounds = Promise.all(Array.from({ length: 10 }, (_, item) => person.say(item + 20, 3)));
    }"""
    for tab in tabs:
        tab.evaluate(script)
    kept = [tab.evaluate("rounds.then(() => person.answers())") for tab in tabs]
    codes = [{one["item"]: one["code"] for one in answers} for answers in kept]
    assert codes[0] == codes[1] and len(codes[0]) == 10


def test_offline_then_online(clean, collecting, films):
    service, store = collecting(films)
    page = clean.open(service.url)
    rate(page, "film 30", 2)
    clean.context.set_offline(True)
    page.click("#send")
    page.wait_for_selector("#status:text('No connection')")
    assert cards(page)["film 30"][2] == "on its way" and store.counts() == (0, 0)
    clean.complaints.clear()  # the browser itself says that it is offline
    clean.context.set_offline(False)
    page.wait_for_selector("#answers :text-is('sent')")
    assert store.counts() == (1, 1)


def test_withdrawing_keeps_the_draw_and_the_limit_holds(clean, collecting, films):
    service, _ = collecting(films)
    page = clean.open(service.url)
    rate(page, "film 40", 2)
    first = cards(page)["film 40"]
    page.click("#answers button")
    page.wait_for_selector("#answers strong", state="detached")
    rate(page, "film 40", 5)
    assert cards(page)["film 40"][1] == first[1]
    costs = sum(float(cell.inner_text()) for cell in page.query_selector_all("#costs td:last-child"))
    page.fill("#limit", str(costs + 0.5))
    page.press("#limit", "Tab")
    page.wait_for_selector(f"#left:text('of {costs + 0.5:g}')")
    page.fill("#search", "film 41")
    page.click("#found button")
    page.check("#ratings input[value='3']")
    page.click("#rate button")
    page.wait_for_selector("#status:text('exceed your limit')")
    assert list(cards(page)) == ["film 40"]
    page.fill("#limit", "1000")
    page.press("#limit", "Tab")
    page.click("#forget")
    page.wait_for_selector("#answers :text('deleted')")
    assert cards(page)["film 40"][1] == first[1]


def test_a_campaign_that_lies_is_refused(clean, collecting, films):
    service, store = collecting(films)
    record = films.to_json()
    record["mechanism"]["epsilon"] = 0.5
    clean.context.route("**/campaign", lambda route: route.fulfill(body=json.dumps(record)))
    page = clean.open(service.url)
    clean.context.unroute("**/campaign")
    assert "reveal more than its stated epsilon" in page.inner_text("#refused")
    assert not page.is_visible("#find") and store.counts() == (0, 0) and clean.posts == []


def test_by_keyboard_alone(clean, collecting, films):
    service, _ = collecting(films)
    page = clean.open(service.url)
    page.focus("#search")
    for key in ("film 55", "Tab", "Enter", "ArrowRight", "ArrowRight", "Tab", "Enter"):
        page.keyboard.type(key) if " " in key else page.keyboard.press(key)
    page.wait_for_selector("#answers strong:text-is('film 55')")
    assert cards(page)["film 55"][0] == "3 of 5 stars"
    assert page.evaluate("document.activeElement.id") == "search"


def test_a_whole_catalog_is_answered_once(clean, collecting, shelf):
    service, store = collecting(shelf)
    page = clean.open(service.url)
    page.fill("#limit", "1000")
    page.press("#limit", "Tab")
    rate(page, "7", 5)
    page.click("#draw")
    page.wait_for_selector("#send:enabled")
    drawn = {title: card[1] for title, card in cards(page).items() if card[1] != "nothing"}
    page.reload()
    page.wait_for_selector("#answers li")
    assert {title: card[1] for title, card in cards(page).items() if card[1] != "nothing"} == drawn
    page.click("#send")
    page.wait_for_selector("#status:text('Sent')")
    ((_, body),) = store.messages()
    report = read_catalog(shelf, body)
    stars = [f"{shelf.mechanism.outputs()[code]:.4g}" for code in report.codes]
    assert dict(zip(map(str, report.items.tolist()), stars, strict=True)) == drawn


def test_recommendations_are_computed_here_and_are_those_of_the_library(clean, collecting, films, tmp_path):
    path = tmp_path / "films.discreet"
    service, store = collecting(films, publish=path)
    rng = np.random.default_rng(4)
    for _ in range(40):
        items = rng.choice(60, 15, replace=False)
        history = {f"film {item}": 5.0 if item % 2 else 1.0 for item in items}
        store.take([submission(films, Device(films).message(history))])
    model = fit_store(store, "local-channel")
    page = clean.open(service.url)
    assert page.is_hidden("#suggestions")
    model.save(path)
    # The service looks for a new model every second; the page asks every half minute, and when it is online.
    until(lambda: ask_json(f"{service.url}/health")[1]["vectors"])
    page.evaluate("dispatchEvent(new Event('online'))")
    page.wait_for_selector("#suggestions", state="visible")
    page.fill("#limit", "1000")
    page.press("#limit", "Tab")
    rate(page, "film 11", 5)
    rate(page, "film 20", 1)
    before = set(clean.hosts)
    expected = [item for item, _ in model.recommend({**said(page)}, 10)]

    def suggested():
        return [one.inner_text().split("\n")[0] for one in page.query_selector_all("#suggested li")]

    # The page computes the list after it shows the rating.
    until(lambda: suggested() == expected)
    assert clean.posts == [] and before == clean.hosts
    page.click("#suggestions summary")
    assert model.guarantee.sentence() in page.inner_text("#label")


def said(page):
    return {title: float(card[0].split()[0]) for title, card in cards(page).items() if card[0] != "forgotten"}


def test_draws_of_the_browser_follow_the_channel_and_not_its_twin(clean, collecting, films):
    service, _ = collecting(films)
    page = clean.open(service.url)
    timid = BoundedLaplace(epsilon=0.8, low=1, high=5, points=241)
    claimed, twin = (cumulative(each.channel().transition[180]) for each in (films.mechanism, timid))
    count = samples_to_separate(gap(claimed, twin, np.arange(241)))
    codes = page.evaluate(
        """async (count) => {
            const { answerRating, openCampaign } = await import("/device/device.js");
            const bytes = new Uint8Array(await (await fetch("/campaign")).arrayBuffer());
            const campaign = await openCampaign(bytes);
            return Array.from({ length: count }, () => answerRating(campaign, 4));
        }""",
        count,
    )
    assert follows(np.array(codes), claimed) and not follows(np.array(codes), twin)
    assert surprise(codes, films.mechanism) < SURE < surprise(codes, timid)


def surprise(codes, mechanism):
    """Return minus the log of the p-value of a chi-square test on twelve cells."""
    edges = np.linspace(0, 241, 13).astype(int)
    counts = np.add.reduceat(np.bincount(codes, minlength=241), edges[:-1])
    expected = np.add.reduceat(mechanism.channel().transition[180], edges[:-1]) * len(codes)
    return float(-chi2.logsf(((counts - expected) ** 2 / expected).sum(), 11))


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_no_violation_of_accessibility_rules_at_any_size(clean, collecting, films, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    service, _ = collecting(films)
    page = clean.open(service.url)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    if "film 50" not in cards(page):
        page.fill("#limit", "1000")
        page.press("#limit", "Tab")
        rate(page, "film 50", 4)
    page.fill("#search", "film 1")
    page.click("#found button >> nth=0")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_few_items_are_listed_and_no_more_answers_than_items_are_counted(clean, collecting):
    few = Campaign(
        name="few",
        mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=241),
        catalog=Vocabulary.of(["Alien", "Brazil", "Clue"]),
        max_reports=20,
        step=1.0,
    )
    service, _ = collecting(few)
    page = clean.open(service.url)
    assert [one.inner_text() for one in page.query_selector_all("#found button")] == [
        "Alien",
        "Brazil",
        "Clue",
    ]
    assert "All 3 answers together cost at most ε = 3." in page.inner_text("#checked")
    page.fill("#search", "bra")
    assert [one.inner_text() for one in page.query_selector_all("#found button")] == ["Brazil"]


def test_the_page_over_a_catalog_says_that_items_are_hidden(clean, collecting, shelf):
    service, _ = collecting(shelf)
    page = clean.open(service.url)
    assert "can't see which items you rated" in page.inner_text("#seen")


def test_a_closed_collection_says_so_at_once(clean, collecting, films):
    service, store = collecting(films)
    store.close_collection()
    page = clean.open(service.url)
    page.wait_for_selector("#status:text('This collection is closed')")
    assert clean.posts == []
