"""Open a campaign of either kind: one that asks for ratings, or one that hides which items were rated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.collect.campaign import Campaign, kind_of_record, unpack
from discreet.collect.hidden_items import CatalogCampaign
from discreet.core.checks import FileError, ParameterError

AnyCampaign = Campaign | CatalogCampaign

#: The name of such a file in messages.
KIND = "discreet campaign"


def campaign_from_json(record: Any) -> AnyCampaign:
    """Return the campaign of a JSON object; refuse anything else."""
    kind = CatalogCampaign if kind_of_record(record) == "catalog" else Campaign
    return kind.from_json(record)


def campaign_from_bytes(raw: bytes) -> AnyCampaign:
    """Return the campaign that `to_bytes` wrote."""
    return campaign_from_json(unpack(raw))


def open_campaign(path: str | Path) -> AnyCampaign:
    """Return the campaign in a file."""
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error
    return campaign_from_bytes(raw)


def is_campaign(path: Path) -> bool:
    """Return whether a file holds a campaign that this version can read."""
    try:
        open_campaign(path)
    except (FileError, ParameterError):
        return False
    return True
