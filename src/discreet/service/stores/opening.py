"""Open a store by its address: sqlite:///reports.db, postgresql://..., or the path of a file."""

from __future__ import annotations

from pathlib import Path

from discreet.checks import ParameterError
from discreet.collect.opening import AnyCampaign
from discreet.service.stores.store import Store


def open_store(url: str, campaign: AnyCampaign | None = None) -> Store:
    """Return the store at `url`; with a campaign it is made if there is none yet."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        from discreet.service.stores.postgresql import PostgresqlStore

        return PostgresqlStore(url, campaign)
    if separator and scheme != "sqlite":
        raise ParameterError("A store is named sqlite:///FILE, postgresql://... or by the path of a file.")
    from discreet.service.stores.sqlite import SqliteStore

    return SqliteStore(Path(rest[1:] if separator else url), campaign)
