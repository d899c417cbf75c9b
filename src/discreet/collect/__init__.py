"""Collect ratings that are private before they leave the device, and read what they say together.

A rating at a time (which items were rated is known): `Campaign`, `Device`, `Collector`. The whole catalog at
once (which items were rated stays hidden): `CatalogCampaign`, `CatalogDevice`, `CatalogCollector`, and
`CatalogTotals` where only sums are kept.
"""

from __future__ import annotations

from discreet.exports import Exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from discreet.collect.catalog.campaign import CatalogCampaign as CatalogCampaign
    from discreet.collect.catalog.campaign import CatalogReport as CatalogReport
    from discreet.collect.catalog.collector import CatalogCollector as CatalogCollector
    from discreet.collect.catalog.device import CatalogDevice as CatalogDevice
    from discreet.collect.catalog.totals import CatalogTotals as CatalogTotals
    from discreet.collect.estimate import Collected as Collected
    from discreet.collect.estimate import ItemMeans as ItemMeans
    from discreet.collect.ratings.campaign import Campaign as Campaign
    from discreet.collect.ratings.collector import Collector as Collector
    from discreet.collect.ratings.device import Device as Device
    from discreet.collect.ratings.wire import RatingReport as RatingReport
    from discreet.collect.ratings.wire import ReportRefusal as ReportRefusal
    from discreet.collect.ratings.wire import ReportRefused as ReportRefused
    from discreet.privacy.mechanisms.bounded import BoundedLaplace as BoundedLaplace
    from discreet.privacy.mechanisms.cells import HiddenStars as HiddenStars
else:
    _exports = Exports(
        "discreet.collect",
        {
            "discreet.collect.ratings.campaign": "Campaign",
            "discreet.collect.ratings.device": "Device",
            "discreet.collect.ratings.collector": "Collector",
            "discreet.collect.ratings.wire": "RatingReport ReportRefusal ReportRefused",
            "discreet.collect.catalog.campaign": "CatalogCampaign CatalogReport",
            "discreet.collect.catalog.device": "CatalogDevice",
            "discreet.collect.catalog.collector": "CatalogCollector",
            "discreet.collect.catalog.totals": "CatalogTotals",
            "discreet.collect.estimate": "Collected ItemMeans",
            # The mechanisms that a campaign is given
            "discreet.privacy.mechanisms.bounded": "BoundedLaplace",
            "discreet.privacy.mechanisms.cells": "HiddenStars",
        },
    )
    __all__ = _exports.names
    __getattr__ = _exports.find

    def __dir__() -> list[str]:
        return __all__
