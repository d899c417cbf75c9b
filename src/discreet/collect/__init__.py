"""Collect ratings under local differential privacy: devices add noise before anything leaves them.

One report per rating (which items were rated is public): `Campaign`, `Device`, `Collector`. One report for
the whole catalog (which items were rated is hidden): `CatalogCampaign`, `CatalogDevice`, `CatalogCollector`,
and `CatalogTotals` where only sums are kept.
"""

# Names, with their modules, are in `__init__.pyi`.
from discreet.core.exports import exported

__all__, __getattr__, __dir__ = exported(__name__)
