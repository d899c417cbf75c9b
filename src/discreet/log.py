"""The one logger: what is done, at level INFO, and what a data holder should know, at level WARNING.

Messages hold what is public, and of reading what an error would say, too: counts, never a record. Like other
libraries `discreet` adds no handler; `logging.basicConfig(level=logging.INFO)` shows all of it.
"""

from __future__ import annotations

import logging

logger = logging.getLogger("discreet")
