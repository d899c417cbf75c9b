"""Drive the system's Chromium; what it complains about, and where it turns to, is written down."""

import contextlib
import shutil
import tempfile
from urllib.parse import urlsplit

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed; `make browser` brings it"
)
PATIENCE = 300
# Both widths and both colors are seen by default; among the slow tests each width in each color.
LOOKS = [
    (1280, "light"),
    (390, "dark"),
    pytest.param(1280, "dark", marks=pytest.mark.slow),
    pytest.param(390, "light", marks=pytest.mark.slow),
]
_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def browsing(**options):
    """Open a profile of its own; its pages share what a device keeps, as tabs do."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path=CHROMIUM, headless=True, args=_FLAGS, **options
        )
        # Long enough for a machine with much else to do.
        context.set_default_timeout(1000 * PATIENCE)
        yield Profile(context)
        context.close()


class Profile:
    """Hold a browser profile, and all that its pages complained about or asked for."""

    def __init__(self, context):
        self.context = context
        self.complaints, self.hosts, self.posts = [], set(), []

    def open(self, url):
        page = self.context.new_page()
        page.on("console", lambda one: self.complaints.append(one.text) if one.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._note)
        page.goto(url)
        page.wait_for_selector("#find:visible, #refused:visible")
        return page

    def _note(self, request):
        self.hosts.add(urlsplit(request.url).netloc)
        if request.method == "POST":
            self.posts.append(request.post_data_buffer)


def rate(page, title, stars):
    """Find an item, choose it and rate it as a person would."""
    page.fill("#search", title)
    page.click(f"#found button:text-is('{title}')")
    page.check(f"#ratings input[value='{stars}']")
    page.click("#rate button")
    page.wait_for_selector(f"#answers strong:text-is('{title}')")


def cards(page):
    """Return what the page shows: title -> (said, sent, state)."""
    return {
        card.query_selector("strong").inner_text(): tuple(
            one.inner_text() for one in card.query_selector_all("dd")
        )
        for card in page.query_selector_all("#answers li")
    }
