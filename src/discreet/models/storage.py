"""Write a fitted model to one zip of arrays and a JSON label, and refuse any other file.

Never pickle. A digest over label and arrays catches files that were cut, mixed or edited; it is not a
signature, so it does not show who wrote the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.checks import DiscreetError, FileError
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.files import refuse_output, write_whole
from discreet.models.fitted import FittedModel
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.guarantee import Guarantee

FORMAT = "discreet-model"
VERSION = 1
#: What a message calls such a file.
KIND = "discreet model"
_LABEL, _ARRAYS = "label.json", "arrays.npz"
_CATALOG = "catalog"
# What the zip format and the JSON inside raise on a foreign or damaged file.
_NOT_A_ZIP = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, NotImplementedError)


def save(model: FittedModel, path: Path, *, force: bool) -> None:
    """Write `model` to `path` in one step: a reader sees the whole file or none.

    An existing file is kept unless `force`, and what is no model is kept even then.
    """
    refuse_output(path, force=force, kind=KIND, is_ours=is_model)
    write_whole(path, _pack(model))


def is_model(path: Path) -> bool:
    """Tell whether a file is a model that `save` wrote, of whatever version."""
    try:
        with zipfile.ZipFile(path) as archive:
            label = json.loads(archive.read(_LABEL))
    except (KeyError, *_NOT_A_ZIP):
        return False
    return isinstance(label, dict) and label.get("format") == FORMAT


def load(path: str | Path) -> FittedModel:
    """Read a model that `save` wrote; a foreign, cut or edited file is refused."""
    path = Path(path)
    label, arrays = _unpack(path)
    try:
        kind = _scorer_kinds()[label["scorer"]["kind"]]
        catalog = Vocabulary.of(arrays.pop(_CATALOG))
        facts = PublicFacts.from_json(label["facts"])
        return FittedModel(
            guarantee=Guarantee.from_json(label["guarantee"]),
            facts=facts,
            catalog=catalog,
            name=str(label["name"]),
            parameters=_from_plain(label["parameters"]),
            scorer=kind.from_parts(arrays, label["scorer"]["settings"]),
        )
    except (KeyError, TypeError, ValueError, DiscreetError) as error:
        raise FileError(f"{path} is a discreet model, but this version cannot read it.") from error


def read_label(path: str | Path) -> dict[str, Any]:
    """Return the label of a saved model without building the model."""
    return _unpack(Path(path))[0]


def _pack(model: FittedModel) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{_CATALOG: model.catalog.ids}, **model.scorer.arrays())
    arrays = buffer.getvalue()
    label: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "guarantee": model.guarantee.to_json(),
        "facts": model.facts.to_json(),
        "parameters": _to_plain(model.parameters),
        "scorer": {"kind": model.scorer.kind, "settings": model.scorer.settings()},
        "provenance": {_CATALOG: "public: the item ids", **model.scorer.provenance},
    }
    label["digest"] = _digest(label, arrays)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ((_LABEL, json.dumps(label, indent=1).encode()), (_ARRAYS, arrays)):
            # A fixed time: two saves of one model are the same bytes, and the file does not say when.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _unpack(path: Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    if not path.is_file():
        raise FileError(f"{path} is not a file. Give the path of a model that `discreet fit` wrote.")
    try:
        with zipfile.ZipFile(path) as archive:
            if sorted(archive.namelist()) != sorted((_LABEL, _ARRAYS)):
                raise FileError(f"{path} is not a discreet model.")
            label = json.loads(archive.read(_LABEL))
            raw = archive.read(_ARRAYS)
    except _NOT_A_ZIP as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} is not a discreet model, or it is damaged.") from error
    if not isinstance(label, dict) or label.get("format") != FORMAT:
        raise FileError(f"{path} is not a discreet model.")
    if label.get("version") != VERSION:
        raise FileError(
            f"{path} was written by another version of discreet (format {label.get('version')!r})."
        )
    if label.pop("digest", None) != _digest(label, raw):
        raise FileError(f"{path} was changed after it was written; its promise cannot be trusted.")
    with np.load(io.BytesIO(raw), allow_pickle=False) as stored:
        return label, {name: stored[name] for name in stored.files}


def _digest(label: Mapping[str, Any], arrays: bytes) -> str:
    text = json.dumps(label, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(
        hashlib.sha256(text.encode()).digest() + hashlib.sha256(arrays).digest()
    ).hexdigest()


def _scorer_kinds() -> dict[str, type[Scorer]]:
    """Find every scorer by its kind, wherever it is defined."""
    import importlib
    import pkgutil

    import discreet.models.scorers

    for module in pkgutil.iter_modules(discreet.models.scorers.__path__):
        importlib.import_module(f"discreet.models.scorers.{module.name}")
    found: dict[str, type[Scorer]] = {}
    queue = list(Scorer.__subclasses__())
    while queue:
        kind = queue.pop()
        queue += kind.__subclasses__()
        if "kind" in kind.__dict__:
            found[kind.kind] = kind
    return found


def _to_plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: "inf" if value == float("inf") else value for name, value in parameters.items()}


def _from_plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: float("inf") if value == "inf" else value for name, value in parameters.items()}
