"""The page of a bundle in a real browser: lists of the library, a history that stays, and no connection."""

import contextlib
import dataclasses
import functools
import http.server
import json
import threading

import numpy as np
import pytest

from discreet.export.bundle.folder import write_bundle
from discreet.service.recommend_app import answering_app
from models_on_devices import MODELS
from service.browser import needs_browser
from service.servers import InProcess, ask
from toy import toy_interactions

pytestmark = needs_browser

HOSTILE = '<img src=x onerror="document.title=1">'


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve a folder as any web server does, and remember what was asked for."""

    def __init__(self, *arguments, asked, **options):
        self.asked = asked
        super().__init__(*arguments, **options)

    def log_message(self, *_):
        self.asked.append((self.command, self.path))


@contextlib.contextmanager
def hosting(folder):
    """Yield the address of a folder and the requests for it."""
    asked = []
    handler = functools.partial(Quiet, directory=str(folder), asked=asked)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def clean(clean):
    """Return the profile, and check that nothing was sent."""
    yield clean
    assert clean.posts == []


@pytest.fixture(scope="module")
def models():
    """Return models by kind, with titles; one title is hostile."""
    data = toy_interactions(n_users=120, n_items=60)
    titles = tuple(HOSTILE if item == 5 else f"Film {item}" for item in range(60))
    return {
        name: dataclasses.replace(MODELS[name](data), public={"title": titles})
        for name in ("interactions", "stars")
    }


@pytest.fixture(scope="module")
def site(models, tmp_path_factory):
    """Yield a web server with a bundle of each model in a folder of its own, and what it was asked for."""
    root = tmp_path_factory.mktemp("site")
    for name, model in models.items():
        write_bundle(model, root / name, title=f"Our {name}", precisions=["float32", "int8"])
    with hosting(root) as found:
        yield found


def opened(clean, url):
    """Open a bundle with nothing kept from the test before."""
    page = clean.open(url)
    page.wait_for_selector("#suggested li")
    if page.is_enabled("#forget"):
        forget(page)
    return page


def forget(page):
    page.click("#forget")
    page.wait_for_selector("#status:text('was deleted')")


def choose(page, title, rating=None):
    """Find an item and choose it as a person would."""
    page.fill("#search", title)
    page.click(f"#found button:text-is('{title}')")
    if rating is not None:
        page.check(f"#ratings input[value='{rating}']")
        page.click("#rate button")
    page.wait_for_selector("#status:text('is kept in this browser')")
    page.wait_for_function(
        "title => document.querySelector('#history span')?.textContent === title", arg=title
    )


def suggested(page):
    return [one.inner_text().split("\n")[0] for one in page.query_selector_all("#suggested li")]


def titles_of(model, listed):
    return [model.titles([item])[item]["title"] for item, _ in listed]


def test_lists_follow_the_history_and_are_those_of_the_library(clean, site, models):
    model, ids = models["interactions"], models["interactions"].catalog.ids.tolist()
    page = opened(clean, f"{site[0]}/interactions/")
    assert page.inner_text("#name") == "Our interactions" == page.title()
    assert suggested(page) == titles_of(model, model.recommend([], 10))
    for count, place in enumerate((7, 11, 3), start=1):
        choose(page, f"Film {place}")
        wanted = model.recommend([ids[one] for one in (7, 11, 3)[:count]], 10)
        assert suggested(page) == titles_of(model, wanted)
    # Chosen again, an item is the latest: recent items count more.
    choose(page, "Film 7")
    assert suggested(page) == titles_of(model, model.recommend([ids[one] for one in (11, 3, 7)], 10))
    assert [one.inner_text() for one in page.query_selector_all("#history span")] == [
        "Film 7",
        "Film 3",
        "Film 11",
    ]
    page.click("button[aria-label='Remove Film 3']")
    page.wait_for_selector("#status:text('Film 3 is removed')")
    assert suggested(page) == titles_of(model, model.recommend([ids[11], ids[7]], 10))
    forget(page)
    assert page.query_selector("#history li") is None and page.is_disabled("#forget")
    assert suggested(page) == titles_of(model, model.recommend([], 10))


def test_ratings_are_asked_for_where_the_model_needs_them(clean, site, models):
    model, ids = models["stars"], models["stars"].catalog.ids.tolist()
    page = opened(clean, f"{site[0]}/stars/")
    choose(page, "Film 9", 5)
    choose(page, "Film 20", 1)
    wanted = model.recommend([(ids[9], 5), (ids[20], 1)], 10)
    assert suggested(page) == titles_of(model, wanted)
    stars = [one.inner_text().split("\n")[1] for one in page.query_selector_all("#suggested li")]
    assert stars == [f"expected {one.stars:.1f}" for one in wanted]


def test_the_label_and_what_was_lost_are_shown(clean, site, models):
    page = opened(clean, f"{site[0]}/interactions/")
    shown = page.inner_text("#label")
    assert models["interactions"].guarantee.sentence() in shown
    for what, value in models["interactions"].guarantee.rows():
        assert what in shown and value in shown
    assert "100% of the first ten items" in page.inner_text("#measured")


def test_titles_are_text_and_never_markup(clean, site):
    page = opened(clean, f"{site[0]}/interactions/")
    page.fill("#search", "onerror")
    assert page.inner_text("#found button") == HOSTILE and page.query_selector("#found img") is None
    page.click("#found button")
    page.wait_for_selector("#history li")
    assert page.inner_text("#history span") == HOSTILE and page.title() == "Our interactions"
    assert page.query_selector("main img") is None


def test_it_opens_and_recommends_without_a_connection(clean, models, tmp_path):
    model, ids = models["interactions"], models["interactions"].catalog.ids.tolist()
    write_bundle(model, tmp_path / "bundle", precisions=["float32"])
    with hosting(tmp_path) as (url, asked):
        page = opened(clean, f"{url}/bundle/")
        choose(page, "Film 30")
        page.wait_for_selector("#offline:text('works without a connection')")
    # What was chosen was never part of a request; from here on nobody answers any.
    assert all(command == "GET" and "?" not in path for command, path in asked)
    page.reload()
    page.wait_for_selector("#history li")
    choose(page, "Film 31")
    assert suggested(page) == titles_of(model, model.recommend([ids[30], ids[31]], 10))
    page.wait_for_selector("#offline:text('works without a connection')")
    other = clean.open(f"{url}/bundle/index.html")
    other.wait_for_selector("#history :text('Film 31')")
    # The browser says that it could not look for a newer worker.
    clean.complaints[:] = [one for one in clean.complaints if "ERR_CONNECTION_REFUSED" not in one]


def test_tabs_share_a_history_and_bundles_do_not(clean, site):
    page, other = (opened(clean, f"{site[0]}/interactions/") for _ in range(2))
    choose(page, "Film 12")
    other.wait_for_selector("#history :text('Film 12')")
    third = opened(clean, f"{site[0]}/stars/")
    assert third.query_selector("#history li") is None
    page.click("#forget")
    other.wait_for_selector("#history li", state="detached")


def test_a_damaged_bundle_is_one_sentence(clean, models, tmp_path):
    write_bundle(models["interactions"], tmp_path / "bundle")
    (tmp_path / "bundle" / "model.int8.bin").write_bytes(b"DSCB")
    with hosting(tmp_path) as (url, _):
        page = clean.open(f"{url}/bundle/")
        assert page.inner_text("#refused") == "This is not a model for devices."
        assert page.is_hidden("#find")


def test_inline_code_is_not_run(clean, site):
    page = opened(clean, f"{site[0]}/interactions/")
    script = """() => {
        const inline = document.createElement("script");
        inline.textContent = "window.ran = 1";
        document.head.append(inline);
    }"""
    with contextlib.suppress(Exception):
        page.evaluate(script)
    assert page.evaluate("window.ran") is None
    clean.complaints.clear()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_violation_of_accessibility_rules_at_any_size(clean, site, tmp_path, scheme, width):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(clean, f"{site[0]}/stars/")
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    choose(page, "Film 40", 4)
    page.fill("#search", "Film 1")
    page.click("#found button >> nth=0")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.screenshot(path=tmp_path / "page.png", full_page=True)


def test_the_service_hands_out_the_bundle(clean, models, tmp_path):
    model = models["interactions"]
    model.save(tmp_path / "m.discreet")
    with InProcess(answering_app(tmp_path / "m.discreet", bundle=True)) as service:
        status, headers, body = ask(f"{service.url}/bundle/bundle.json")
        assert status == 200 and headers["content-type"] == "application/json"
        assert json.loads(body)["name"] == model.name and "worker-src" in headers["content-security-policy"]
        for path in ("no.json", "../m.discreet", "%2e%2e/m.discreet", "x" * 1000):
            assert ask(f"{service.url}/bundle/{path}")[0] in (404, 422)
        page = clean.open(f"{service.url}/bundle")
        choose(page, "Film 3")
        page.wait_for_selector("#offline:text('works without a connection')")
        assert len(suggested(page)) == 10
    with InProcess(answering_app(tmp_path / "m.discreet")) as service:
        assert ask(f"{service.url}/bundle/")[0] == 404


def test_a_list_of_a_large_catalog_is_found_in_the_browser(clean, site):
    """Typing finds items by parts of their titles, whatever their letters; nothing typed finds nothing."""
    page = opened(clean, f"{site[0]}/interactions/")
    page.fill("#search", "fILM 5")
    assert len(page.query_selector_all("#found button")) == 8
    page.fill("#search", "")
    assert page.query_selector("#found button") is None


def test_random_histories_agree_in_the_browser(clean, site, models):
    model, rng = models["stars"], np.random.default_rng(5)
    page = opened(clean, f"{site[0]}/stars/")
    ids = model.catalog.ids.tolist()
    histories = [
        [
            [ids[place], float(rng.integers(1, 6))]
            for place in rng.choice(60, rng.integers(0, 20), replace=False)
        ]
        for _ in range(50)
    ]
    script = """async (histories) => {
        const { openBundle } = await import("./shared/recommender.js");
        const bundle = await openBundle(new URL("./", location));
        return histories.map((one) => bundle.recommend(one).map(({ item }) => item));
    }"""
    found = page.evaluate(script, histories)
    wanted = [
        [item for item, _ in model.recommend([tuple(one) for one in history], 10)] for history in histories
    ]
    assert found == wanted
