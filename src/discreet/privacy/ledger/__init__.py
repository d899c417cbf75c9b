"""The book of what was spent: the ledger, its rows, its file and its report."""

from discreet.privacy.ledger.book import Ledger

__all__ = ["Ledger"]
