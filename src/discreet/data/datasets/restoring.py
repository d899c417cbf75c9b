"""Restore rating files to their published layout from other files that carry the same ratings.

What comes out is compared with the checksum of the published file, so a mistake here cannot go unnoticed.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import polars as pl

# MovieLens 1M numbers its 3,883 films in the order of its film list, from 1 to 3,952, without these numbers.
_UNUSED_1M_IDS = frozenset(
    (91, 221, 323, 622, 646, 677, 686, 689, 740, 817, 883, 995, 1048, 1072, 1074, 1182, 1195, 1229,
     1239, 1338, 1402, 1403, 1418, 1435, 1451, 1452, 1469, 1478, 1481, 1491, 1492, 1505, 1506, 1512,
     1521, 1530, 1536, 1540, 1560, 1576, 1607, 1618, 1634, 1637, 1638, 1691, 1700, 1712, 1736, 1737,
     1745, 1751, 1761, 1763, 1766, 1775, 1778, 1786, 1790, 1800, 1802, 1803, 1808, 1813, 1818, 1823,
     1828, 1838, 3815)
)  # fmt: skip
_LAST_1M_ID = 3952


def movielens_100k(inside: Path, folder: Path) -> None:
    """Write `u.data` from `ml-100k.inter`, which adds one header line."""
    with (inside / "ml-100k.inter").open("rb") as stream, (folder / "u.data").open("wb") as target:
        stream.readline()
        shutil.copyfileobj(stream, target)


def movielens_1m(inside: Path, folder: Path) -> None:
    """Write `ratings.dat` from `ml-1m.inter`, which gives titles for ids, and the list in `ml-1m.item`."""
    titles = _read_atomic(inside / "ml-1m.item").get_column("item_id:token")
    ids = [str(number) for number in range(1, _LAST_1M_ID + 1) if number not in _UNUSED_1M_IDS]
    films = pl.DataFrame({"item_id:token": titles, "film": ids})
    ratings = _read_atomic(inside / "ml-1m.inter").join(
        films, on="item_id:token", how="left", maintain_order="left"
    )
    user = pl.col("user_id:token").str.strip_prefix("1m_")
    line = pl.concat_str(user, "film", "rating:float", "timestamp:float", separator="::")
    ratings.select(line).write_csv(folder / "ratings.dat", include_header=False, quote_style="never")


def amazon_ratings(reviews: Path, folder: Path) -> None:
    """Write `user item rating` from the compressed JSON reviews, both ids renumbered as they first appear."""
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    target_path = folder / "Amazon_Instant_Video_5.txt"
    with gzip.open(reviews, "rt", encoding="utf-8") as stream, target_path.open("w", newline="\n") as target:
        for line in stream:
            review = json.loads(line)
            user = users.setdefault(review["reviewerID"], len(users))
            item = items.setdefault(review["asin"], len(items))
            target.write(f"{user}\t{item}\t{review['overall']:.0f}\n")


def _read_atomic(path: Path) -> pl.DataFrame:
    """Read a tab-separated table as text, quotes being ordinary characters."""
    return pl.read_csv(path, separator="\t", infer_schema=False, quote_char=None, eol_char="\n").select(
        pl.all().name.map(str.strip)
    ).with_columns(pl.all().str.strip_suffix("\r"))  # fmt: skip
