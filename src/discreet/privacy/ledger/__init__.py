"""Keep the ledger of spent privacy budget: its rows, its file, and its report."""

from discreet.privacy.ledger.ledger import Ledger

__all__ = ["Ledger"]
