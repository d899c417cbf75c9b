"""Take the pictures of three pages at two widths, by day and by night; needs a browser.

They are the page of a campaign (docs/collecting.md), that of a bundle (docs/on_device.md) and that of
synthetic data (docs/give_data_away.md).

`make browser` brings one; it is driven from tests/service.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from build import ROOT, Making

sys.path.append(str(ROOT / "tests"))

from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.data.datasets.catalog import load
from discreet.data.interactions import Interactions
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.privacy.mechanisms.bounded import BoundedLaplace
from discreet.service.admission import submission
from discreet.service.collect_app import collecting_app
from discreet.service.recommend_app import answering_app
from discreet.service.refitting import fit_store
from discreet.service.stores import open_store
from discreet.synthesis.making import make
from discreet.synthesis.page import render_page
from service.browser import browsing, rate
from service.servers import InProcess

IMAGES = ROOT / "docs" / "images"
RATED = {"Beyond the Astronaut": 5, "Beyond the Cellar Door": 2, "Beyond the Bouquet": 4}
SIZES = {1280: 1100, 390: 844}


def take_pictures(made: Making) -> None:
    """Take all pictures."""
    data = load("discreet-demo").select_users(np.arange(30 if made.toy else 300))
    campaign(made, data)
    bundle(made)
    synthetic(made, data)


def campaign(made: Making, data: Interactions) -> None:
    """Collect from some people of the demo, learn, and look at the page as one more person."""
    asked = Campaign(
        name="Films of our town",
        mechanism=BoundedLaplace(epsilon=1.0, low=1, high=5, points=241),
        catalog=data.catalog,
        max_reports=40,
        step=1.0,
    )
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/reports.db", asked)
        for person in range(data.n_users):
            span = slice(data.indptr[person], min(data.indptr[person] + 40, data.indptr[person + 1]))
            titles = data.catalog.id_at(data.items[span]).tolist()
            history = dict(zip(titles, data.values[span].tolist(), strict=True))
            store.take([submission(asked, Device(asked, budget=40.0).message(history))])
        published = Path(folder) / "films.discreet"
        fit_store(store, "local-channel").save(published)
        with InProcess(collecting_app(store, publish=published)) as service, browsing() as profile:
            photograph(profile.open(service.url), made)
        store.close()


def bundle(made: Making) -> None:
    """Bundle a private model of the demo, choose a few films, and take four pictures."""
    data = load("discreet-demo")
    model = UserFactorization(epsilon=5.0, feedback="implicit").fit(
        data.select_users(np.arange(100)) if made.toy else data
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "films.discreet"
        model.save(file)
        with InProcess(answering_app(file, bundle=True)) as service, browsing() as profile:
            page = profile.open(f"{service.url}/bundle/")
            for title in RATED:
                page.fill("#search", title)
                page.click(f"#found button:text-is('{title}')")
                page.wait_for_selector(f"#status:text('{title}')")
            page.wait_for_selector("#offline:text('without a connection')")
            page.fill("#search", "camp")
            pictures(page, made, "on-device")


def synthetic(made: Making, data: Interactions) -> None:
    """Draw users from a private model of the demo, beside the data for their holder's eyes."""
    model = UserFactorization(epsilon=5.0, for_synthesis=True).fit(data)
    text = render_page(model, make(model, data.n_users, seed=0), data)
    with tempfile.TemporaryDirectory() as folder, browsing() as profile:
        file = Path(folder) / "synthetic.html"
        file.write_text(text, encoding="utf8")
        page = profile.context.new_page()
        page.goto(file.as_uri())
        pictures(page, made, "synthetic")


def photograph(page: Any, made: Making) -> None:
    """Rate, send, rate once more, and take four pictures."""
    for title, stars in list(RATED.items())[:2]:
        rate(page, title, stars)
    page.click("#send")
    page.wait_for_selector("#status:text('stored')")
    rate(page, *list(RATED.items())[2])
    page.fill("#search", "camp")
    page.click("#found button >> nth=0")
    pictures(page, made, "collecting")


def pictures(page: Any, made: Making, name: str) -> None:
    """Take a picture of a page by day and by night, on a screen and on a phone."""
    for scheme in ("light", "dark"):
        for width, height in SIZES.items():
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            place = made.place(IMAGES / f"{name}-{width}-{scheme}.png")
            page.screenshot(path=place, full_page=True)
