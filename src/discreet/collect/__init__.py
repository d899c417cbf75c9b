"""Collect ratings under local differential privacy: devices add noise before anything leaves them.

One report per rating (which items were rated is public): `Campaign`, `Device`, `Collector`. One report for
the whole catalog (which items were rated is hidden): `CatalogCampaign`, `CatalogDevice`, `CatalogCollector`,
and `CatalogTotals` where only sums are kept.
"""

from __future__ import annotations

from discreet.core.exports import Exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from discreet.collect.campaign import Campaign as Campaign
    from discreet.collect.collector import CatalogCollector as CatalogCollector
    from discreet.collect.collector import CatalogTotals as CatalogTotals
    from discreet.collect.collector import Collector as Collector
    from discreet.collect.device import CatalogDevice as CatalogDevice
    from discreet.collect.device import Device as Device
    from discreet.collect.estimate import Collected as Collected
    from discreet.collect.estimate import ItemMeans as ItemMeans
    from discreet.collect.hidden_items import CatalogCampaign as CatalogCampaign
    from discreet.collect.hidden_items import CatalogReport as CatalogReport
    from discreet.collect.wire import RatingReport as RatingReport
    from discreet.collect.wire import ReportRefusal as ReportRefusal
    from discreet.collect.wire import ReportRefused as ReportRefused
    from discreet.privacy.mechanisms.bounded import BoundedLaplace as BoundedLaplace
    from discreet.privacy.mechanisms.cells import HiddenStars as HiddenStars
else:
    _exports = Exports(
        "discreet.collect",
        {
            "discreet.collect.campaign": "Campaign",
            "discreet.collect.device": "Device CatalogDevice",
            "discreet.collect.collector": "Collector CatalogCollector CatalogTotals",
            "discreet.collect.wire": "RatingReport ReportRefusal ReportRefused",
            "discreet.collect.hidden_items": "CatalogCampaign CatalogReport",
            "discreet.collect.estimate": "Collected ItemMeans",
            # Mechanisms of campaigns
            "discreet.privacy.mechanisms.bounded": "BoundedLaplace",
            "discreet.privacy.mechanisms.cells": "HiddenStars",
        },
    )
    __all__ = _exports.names
    __getattr__ = _exports.find

    def __dir__() -> list[str]:
        return __all__
