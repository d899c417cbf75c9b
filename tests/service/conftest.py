"""Stores of both kinds, and a place to put them."""

import contextlib

import pytest

from discreet.collect.campaign import Campaign
from discreet.collect.hidden_items import CatalogCampaign
from discreet.data.vocabulary import Vocabulary
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.privacy.mechanisms.cells import HiddenStars
from discreet.service.collect_app import collecting_app
from discreet.service.stores import open_store
from service.browser import browsing
from service.servers import InProcess


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request, tmp_path):
    """Return the address of an empty store of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/reports.db"
    return request.getfixturevalue("postgresql").fresh()


@pytest.fixture
def films():
    return Campaign(
        name="films",
        mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=241),
        catalog=Vocabulary.of([f"film {number}" for number in range(60)]),
        max_reports=20,
        step=1.0,
    )


@pytest.fixture
def shelf():
    return CatalogCampaign(name="shelf", mechanism=HiddenStars(epsilon=2.0), catalog=Vocabulary.of(range(30)))


@pytest.fixture(scope="module")
def profile():
    """Open a browser for the tests of one file: while it is open, its event loop runs in this thread."""
    with browsing() as found:
        yield found


@pytest.fixture
def clean(profile):
    """Return the profile with nothing kept from the test before, and check what it complained about."""
    profile.complaints.clear()
    profile.hosts.clear()
    profile.posts.clear()
    yield profile
    for page in profile.context.pages[1:]:
        page.close()
    assert profile.complaints == []
    assert all(host.startswith("127.0.0.1:") for host in profile.hosts)


@pytest.fixture
def collecting(tmp_path):
    """Collect in this process, for services that end with the test."""
    with contextlib.ExitStack() as stack:

        def start(campaign, store=None, **options):
            kept = open_store(store or f"sqlite:///{tmp_path}/kept.db", campaign)
            stack.callback(kept.close)
            quick = {"per_minute": 0, "batch_seconds": 0.0, **options}
            return stack.enter_context(InProcess(collecting_app(kept, **quick))), kept

        yield start
