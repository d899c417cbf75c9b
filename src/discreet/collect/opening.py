"""Open a campaign of any kind: for ratings, for whole catalogs, or for gradients in rounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.collect.campaign import Campaign, kind_of_record, unpack
from discreet.collect.gradient_rounds import GradientCampaign, is_gradient_campaign
from discreet.collect.hidden_items import CatalogCampaign
from discreet.core import FileUnreadable
from discreet.core.checks import FileError, ParameterError

AnyCampaign = Campaign | CatalogCampaign | GradientCampaign

#: The name of such a file in messages.
KIND = "discreet campaign"


def campaign_from_json(record: Any) -> AnyCampaign:
    """Return the campaign of a JSON object; raise for anything else."""
    if is_gradient_campaign(record):
        return GradientCampaign.from_json(record)
    kind = CatalogCampaign if kind_of_record(record) == "catalog" else Campaign
    return kind.from_json(record)


def campaign_from_bytes(raw: bytes) -> AnyCampaign:
    """Return the campaign that `to_bytes` wrote."""
    return campaign_from_json(unpack(raw))


def open_campaign(path: str | Path) -> AnyCampaign:
    """Return the campaign in a file."""
    return campaign_from_bytes(campaign_bytes(path))


def campaign_bytes(path: str | Path) -> bytes:
    """Return the bytes of a campaign's file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise FileUnreadable(path=path, reason=error.strerror or str(error)) from error


def is_campaign(path: Path) -> bool:
    """Return whether a file has a campaign that this version can read."""
    try:
        open_campaign(path)
    except (FileError, ParameterError):
        return False
    return True
