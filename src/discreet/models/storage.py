"""Write a fitted model to one zip of arrays and a JSON label, and reject any other file.

Nothing is pickled. A digest over label and arrays detects truncated, mixed or edited files; it is not a
signature, so it does not show who wrote the file.

The format is numpy's `.npz`, so that anybody can open it. Text ids are two arrays, all letters and the end of
each id: with one width for all, one long id would enlarge every other. Reading allocates no more than a few
times the size of the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.core import STRANGE_HEADER, NoSuchFile, refuse_output, write_whole
from discreet.core.checks import DiscreetError
from discreet.data import CHOSEN, CHOSEN_SCALE, N_ITEMS, PublicFacts, Schema, Vocabulary
from discreet.models.errors import MalformedPart, ModelChanged, NotAModel, OtherVersion
from discreet.models.fitted import FittedModel, Origin
from discreet.models.items import SOURCE, checked
from discreet.models.scorers.scorer import Ids, build_scorer
from discreet.privacy import Guarantee

FORMAT = "discreet-model"
#: Version 2 added public columns. Version 3 has assumptions as objects instead of sentences. Version 4
#: renamed arrays and decisions.
VERSION, _READABLE = 4, (1, 2, 3, 4)
OLD_ARRAYS = {"crowds": "co_occurrences", "likeness": "neighbor_similarities"}
OLD_DECISIONS = {
    "people per noise": "users per noise",
    "ratings a person, about": "ratings per user, about",
    "a second moment can show taste": "enough users for factors",
    "part explained at a glance": "variance explained by pilot",
    "factors pay": "factors found",
    "choices kept": "co-occurrence factors kept",
}
OLD_ROUTES = {"taste": "factors"}
#: The name of such a file in messages.
KIND = "discreet model"
_LABEL, _ARRAYS = "label.json", "arrays.npz"
_CATALOG, _PUBLIC = "catalog", "public"
_CHOSEN = "chosen from the data with noise, which the guarantee covers"
_MOST_LABEL = 1 << 22
# A model's arrays compress little: a file that declares more growth than this is a zip bomb.
_MOST_GROWTH, _ALWAYS_ALLOWED = 64, 1 << 26
# Errors that an untrusted label can cause.
_NOT_A_LABEL = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, DiscreetError)


def save(model: FittedModel, path: Path, *, force: bool) -> None:
    """Write `model` to `path` atomically: a reader sees the whole file or none.

    An existing file is kept unless `force`; a file that is not a model is kept even then.
    """
    refuse_model(path, force=force)
    write_whole(path, packed(model))


def refuse_model(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> None:
    """Raise, before any work, if a model can't be written here: `inputs` and other files are kept."""
    refuse_output(path, force=force, kind=KIND, is_ours=is_model, inputs=inputs)


def is_model(path: Path) -> bool:
    """Return whether a file is a model that `save` wrote, of any version."""
    try:
        with zipfile.ZipFile(path) as archive:
            label = json.loads(read_member(archive, _LABEL, _MOST_LABEL))
    except DAMAGED:
        return False
    return isinstance(label, dict) and label.get("format") == FORMAT


def load(path: str | Path) -> FittedModel:
    """Return the model in a file that `save` wrote. Raise an error if the file is foreign, cut, or edited.

    `load` checks all content against the declarations of the kind of model. So an untrusted file can contain
    false numbers, but it can't run code or use unbounded memory.
    """
    path = Path(path)
    label, raw = _open(path)
    try:
        arrays = _renamed(unpack_arrays(raw))
        catalog = Ids(source="", count="items").read(_CATALOG, arrays.pop(_CATALOG), {})
        facts = PublicFacts.from_json(label["facts"])
        if facts.n_items != len(catalog):
            raise MalformedPart(part="catalog", rule="length")
        scorer = label["scorer"]
        names = label["public"] if label["version"] > 1 else []
        texts = [arrays.pop(f"{_PUBLIC}{place}") for place in range(len(names))]
        return FittedModel(
            guarantee=Guarantee.from_json(label["guarantee"]),
            facts=facts,
            catalog=catalog,
            name=str(label["name"]),
            parameters={
                str(name): float("inf") if value == "inf" else value
                for name, value in label["parameters"].items()
            },
            scorer=build_scorer(scorer["kind"], arrays, scorer["settings"], len(catalog)),
            public=checked(names, list(texts), len(catalog)),
            certificate=_certificate(label),
            schema=Schema.from_json(label["schema"]) if "schema" in label else None,
            origin=Origin.from_json(label["origin"]) if "origin" in label else None,
        )
    except (*_NOT_A_LABEL, *DAMAGED) as error:
        raise OtherVersion(path=path) from error


def read_label(path: str | Path) -> dict[str, Any]:
    """Return the label of a saved model without building the model."""
    return _open(Path(path))[0]


def packed(model: FittedModel) -> bytes:
    """Return what `save` writes: equal bytes for equal models."""
    scorer = model.scorer
    parts = scorer.arrays()
    listed = {name for name, part in scorer.stored.items() if isinstance(part, Ids)}
    ids = {name: Vocabulary.of(parts.pop(name)) for name in listed}
    texts = {f"{_PUBLIC}{place}": column for place, column in enumerate(model.public.values())}
    arrays = pack_arrays(parts, {_CATALOG: model.catalog, **ids}, texts)
    label = label_of(model)
    label["digest"] = _digest(label, arrays)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ((_LABEL, json.dumps(label, indent=1).encode()), (_ARRAYS, arrays)):
            # A fixed time, so that two saves of one model are identical.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def label_of(model: FittedModel) -> dict[str, Any]:
    """Return the label that the file of a model has, without its digest."""
    scorer = model.scorer
    stored = set(scorer.arrays())
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "guarantee": model.guarantee.to_json(),
        "facts": model.facts.to_json(),
        "parameters": {
            name: "inf" if value == float("inf") else value for name, value in model.parameters.items()
        },
        "scorer": {"kind": scorer.kind, "settings": scorer.settings()},
        "provenance": {
            _CATALOG: _catalog_source(model.facts),
            **{name: part.source for name, part in scorer.stored.items() if name in stored},
            **_scale_source(model.facts),
            **{f"public column {name}": SOURCE for name in model.public},
        },
        "public": list(model.public),
        **({} if model.certificate is None else {"certificate": model.certificate}),
        **({} if model.schema is None else {"schema": model.schema.to_json()}),
        **({} if model.origin is None else {"origin": model.origin.to_json()}),
    }


def _scale_source(facts: PublicFacts) -> dict[str, str]:
    return {"scale": f"{facts.low:g} to {facts.high:g}, {_CHOSEN}"} if CHOSEN_SCALE in facts.from_file else {}


def _catalog_source(facts: PublicFacts) -> str:
    if CHOSEN in facts.from_file:
        return _CHOSEN
    if N_ITEMS in facts.from_file:
        return "taken from the data without noise: may be published only if the catalog is public anyway"
    return "public: the item ids"


def _open(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the label and the packed arrays of a file after checking its digest."""
    if not path.is_file():
        raise NoSuchFile(path=path, kind="model file")
    try:
        most = max(_ALWAYS_ALLOWED, _MOST_GROWTH * path.stat().st_size)
        with zipfile.ZipFile(path) as archive:
            if sorted(archive.namelist()) != sorted((_LABEL, _ARRAYS)):
                raise MalformedPart(part="list of members", rule="length")
            label = json.loads(read_member(archive, _LABEL, _MOST_LABEL))
            raw = read_member(archive, _ARRAYS, most)
    except DAMAGED as error:
        raise NotAModel(path=path) from error
    if not isinstance(label, dict) or label.get("format") != FORMAT:
        raise NotAModel(path=path)
    if label.get("version") not in _READABLE:
        raise OtherVersion(path=path)
    if label.pop("digest", None) != _digest(label, raw):
        raise ModelChanged(path=path)
    if not _is_label(label):
        raise OtherVersion(path=path)
    label["provenance"] = _renamed(label["provenance"])
    settings = label["scorer"].get("settings")
    if isinstance(settings, dict) and isinstance(settings.get("decisions"), dict):
        settings["decisions"] = _renamed_decisions(settings["decisions"])
    return label, raw


def _renamed(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays, or facts about arrays, under their present names."""
    return {OLD_ARRAYS.get(name, name): part for name, part in parts.items()}


def _renamed_decisions(decisions: Mapping[str, Any]) -> dict[str, Any]:
    found = {OLD_DECISIONS.get(name, name): value for name, value in decisions.items()}
    if isinstance(route := found.get("route"), str):
        found["route"] = OLD_ROUTES.get(route, route)
    return found


def _certificate(label: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the certificate as it is, if there is one; `discreet-verify` reads it, and nothing here does."""
    found = label.get("certificate")
    if found is not None and not isinstance(found, dict):
        raise MalformedPart(part="certificate", rule="type")
    return found


def _is_label(label: Mapping[str, Any]) -> bool:
    """Return whether a label has the parts that its readers show, each of the expected type."""
    parts = ("guarantee", "facts", "parameters", "scorer", "provenance")
    if not isinstance(label.get("name"), str) or not all(isinstance(label.get(one), dict) for one in parts):
        return False
    return all(isinstance(origin, str) for origin in label["provenance"].values())


def _digest(label: Mapping[str, Any], arrays: bytes) -> str:
    text = json.dumps(label, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(
        hashlib.sha256(text.encode(errors="surrogatepass")).digest() + hashlib.sha256(arrays).digest()
    ).hexdigest()


Array = npt.NDArray[Any]

#: Errors of reading a foreign or damaged zip, or JSON in it; RuntimeError means an encrypted zip.
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
    """Return a zip member that declares at most `most` bytes; it cannot unpack to more than declared."""
    member = archive.getinfo(name)
    if member.file_size > most or member.compress_type not in _PLAIN:
        raise MalformedPart(part=name, rule="size")
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
    # As `numpy.savez` does, whose older versions can't reject Python objects.
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
            raise MalformedPart(part="arrays", rule="size")
        plain = {member.filename.removesuffix(".npy"): _array(archive.read(member)) for member in members}
    if len(plain) < len(members):
        raise MalformedPart(part="arrays", rule="order")
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
        raise MalformedPart(part="text IDs", rule="type")
    steps = np.diff(ends, prepend=0)
    if np.any(steps < 0) or (ends[-1] if ends.size else 0) != letters.size:
        raise MalformedPart(part="text IDs", rule="length")
    raw = letters.tobytes()
    starts = ends - steps
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [raw[start:end].decode() for start, end in pairs]


def _array(raw: bytes) -> Array:
    """Return the array in the bytes of an `.npy` file; its header must declare exactly the bytes after it."""
    file = io.BytesIO(raw)
    reader = np.lib.format.read_array_header_1_0
    if np.lib.format.read_magic(file) != (1, 0):
        reader = np.lib.format.read_array_header_2_0
    try:
        shape, by_column, dtype = reader(file)
    except STRANGE_HEADER as error:
        raise MalformedPart(part="array", rule="header") from error
    if dtype.kind not in "fiuU" or dtype.itemsize == 0 or not dtype.isnative:
        raise MalformedPart(part="array", rule="type")
    count = 1
    for size in shape:
        if size < 0:
            raise MalformedPart(part="array", rule="size")
        count *= int(size)
    body = raw[file.tell() :]
    if count * dtype.itemsize != len(body):
        raise MalformedPart(part="array", rule="length")
    return np.frombuffer(body, dtype=dtype).reshape(shape, order="F" if by_column else "C")
