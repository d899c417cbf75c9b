"""Keep arrays and lists of ids as the bytes of one zip without compression, and trust no byte of such a zip.

The form is numpy's `.npz`, so that anybody can open it. Text ids are two arrays, all letters and where each
id ends: with one width for all, one long id would cost as much for every other. Reading allocates no more
than a few times what was given.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.arrays import STRANGE_HEADER
from discreet.checks import DataError
from discreet.data.vocabulary import Vocabulary

Array = npt.NDArray[Any]

#: What a zip, and JSON in it, raise when they are foreign or damaged; RuntimeError stands for a password.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    KeyError,
    EOFError,
    OSError,
    RuntimeError,
    OverflowError,
    MemoryError,
)
_TEXT, _LINES, _ENDS = ".text", ".lines", ".ends"
_PLAIN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """Return a member of a zip if it promises at most so many bytes; it cannot give more than it promises."""
    member = archive.getinfo(name)
    if member.file_size > most or member.compress_type not in _PLAIN:
        raise DataError(f"{name} unpacks to more than {most:,} bytes, or is packed in another way.")
    return archive.read(member)


def pack_arrays(
    arrays: Mapping[str, Array],
    ids: Mapping[str, Vocabulary],
    texts: Mapping[str, Sequence[str]] | None = None,
) -> bytes:
    """Return arrays, ids and lists of texts (which may repeat) as bytes."""
    plain = dict(arrays)
    for name, vocabulary in ids.items():
        plain |= _letters(name + _TEXT, vocabulary.ids) if vocabulary.is_text else {name: vocabulary.ids}
    for name, lines in (texts or {}).items():
        plain |= _letters(name + _LINES, lines)
    buffer = io.BytesIO()
    # As `numpy.savez` does, whose older versions cannot be told to refuse Python objects.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in plain.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
    return buffer.getvalue()


def unpack_arrays(raw: bytes) -> dict[str, Array | Vocabulary | tuple[str, ...]]:
    """Return what `pack_arrays` wrote; ids that are numbers come back as an array."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > len(raw):
            raise DataError("The arrays promise more than was sent.")
        plain = {member.filename.removesuffix(".npy"): _array(archive.read(member)) for member in members}
    if len(plain) < len(members):
        raise DataError("An array comes twice.")
    found: dict[str, Array | Vocabulary | tuple[str, ...]] = {}
    for name, array in plain.items():
        if name.endswith(_TEXT):
            found[name.removesuffix(_TEXT)] = Vocabulary.of(_texts(array, plain[_ends(name)]))
        elif name.endswith(_LINES):
            found[name.removesuffix(_LINES)] = tuple(_texts(array, plain[_ends(name)]))
        elif not name.endswith(_ENDS):
            found[name] = array
    return found


def _letters(name: str, lines: Iterable[str]) -> dict[str, Array]:
    texts = [text.encode() for text in lines]
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    return {name: np.frombuffer(b"".join(texts), dtype=np.uint8), _ends(name): ends}


def _ends(name: str) -> str:
    return name.rpartition(".")[0] + _ENDS


def _texts(letters: Array, ends: Array) -> list[str]:
    if letters.dtype != np.uint8 or ends.dtype != np.int64 or letters.ndim != 1 or ends.ndim != 1:
        raise DataError("Text ids are letters and ends.")
    steps = np.diff(ends, prepend=0)
    if np.any(steps < 0) or (ends[-1] if ends.size else 0) != letters.size:
        raise DataError("The ends of text ids do not fit their letters.")
    raw = letters.tobytes()
    starts = ends - steps
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [raw[start:end].decode() for start, end in pairs]


def _array(raw: bytes) -> Array:
    """Return the array in the bytes of an `.npy` file; its header may promise exactly what follows it."""
    file = io.BytesIO(raw)
    reader = np.lib.format.read_array_header_1_0
    if np.lib.format.read_magic(file) != (1, 0):
        reader = np.lib.format.read_array_header_2_0
    try:
        shape, by_column, dtype = reader(file)
    except STRANGE_HEADER as error:
        raise DataError("An array has a header that cannot be read.") from error
    if dtype.kind not in "fiuU" or dtype.itemsize == 0 or not dtype.isnative:
        raise DataError("An array holds something else than numbers or text.")
    count = 1
    for size in shape:
        if size < 0:
            raise DataError("An array has a negative size.")
        count *= int(size)
    body = raw[file.tell() :]
    if count * dtype.itemsize != len(body):
        raise DataError("An array is longer or shorter than its header says.")
    return np.frombuffer(body, dtype=dtype).reshape(shape, order="F" if by_column else "C")
