"""Write a fitted model to one zip of arrays and a JSON label, and refuse any other file.

Never pickle. A digest over label and arrays catches files that were cut, mixed or edited; it is not a
signature, so it does not show who wrote the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.checks import DataError, DiscreetError, FileError
from discreet.data.facts import CHOSEN, CHOSEN_SCALE, N_ITEMS, PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.files import refuse_output, write_whole
from discreet.models.fitted import FittedModel
from discreet.models.packing import DAMAGED, pack_arrays, read_member, unpack_arrays
from discreet.models.public_columns import SOURCE, checked
from discreet.models.scorers.kinds import build_scorer
from discreet.models.scorers.parts import Ids
from discreet.privacy.guarantee import Guarantee

FORMAT = "discreet-model"
#: A file with public columns is of the second version; others stay readable for programs that know the first.
VERSION, _WITH_COLUMNS = 1, 2
#: What a message calls such a file.
KIND = "discreet model"
_LABEL, _ARRAYS = "label.json", "arrays.npz"
_CATALOG, _PUBLIC = "catalog", "public"
_CHOSEN = "chosen from the data with noise, which is paid for"
_MOST_LABEL = 1 << 22
# Arrays of a model hardly shrink when they are packed: a file that promises more of itself is a bomb.
_MOST_GROWTH, _ALWAYS_ALLOWED = 64, 1 << 26
# What a label made by a stranger can make its readers raise.
_NOT_A_LABEL = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, DiscreetError)


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
            label = json.loads(read_member(archive, _LABEL, _MOST_LABEL))
    except DAMAGED:
        return False
    return isinstance(label, dict) and label.get("format") == FORMAT


def load(path: str | Path) -> FittedModel:
    """Read a model that `save` wrote; a foreign, cut or edited file is refused.

    Everything in the file is checked against what its kind of model declares, so that a file from a stranger
    can be wrong about the world, but not break anything here.
    """
    path = Path(path)
    label, raw = _open(path)
    try:
        arrays = unpack_arrays(raw)
        catalog = Ids(source="", count="items").read(_CATALOG, arrays.pop(_CATALOG), {})
        facts = PublicFacts.from_json(label["facts"])
        if facts.n_items != len(catalog):
            raise DataError("The facts speak of another catalog.")
        scorer = label["scorer"]
        names = label["public"] if label["version"] == _WITH_COLUMNS else []
        texts = [arrays.pop(f"{_PUBLIC}{place}") for place in range(len(names))]
        return FittedModel(
            guarantee=Guarantee.from_json(label["guarantee"]),
            facts=facts,
            catalog=catalog,
            name=str(label["name"]),
            parameters=_from_plain(label["parameters"]),
            scorer=build_scorer(scorer["kind"], arrays, scorer["settings"], len(catalog)),
            public=checked(names, list(texts), len(catalog)),
        )
    except (*_NOT_A_LABEL, *DAMAGED) as error:
        raise FileError(f"{path} is a discreet model, but this version cannot read it.") from error


def read_label(path: str | Path) -> dict[str, Any]:
    """Return the label of a saved model without building the model."""
    return _open(Path(path))[0]


def _pack(model: FittedModel) -> bytes:
    scorer = model.scorer
    parts = scorer.arrays()
    listed = {name for name, part in scorer.stored.items() if isinstance(part, Ids)}
    ids = {name: Vocabulary.of(parts.pop(name)) for name in listed}
    texts = {f"{_PUBLIC}{place}": column for place, column in enumerate(model.public.values())}
    arrays = pack_arrays(parts, {_CATALOG: model.catalog, **ids}, texts)
    label: dict[str, Any] = {
        "format": FORMAT,
        "version": _WITH_COLUMNS if texts else VERSION,
        "name": model.name,
        "guarantee": model.guarantee.to_json(),
        "facts": model.facts.to_json(),
        "parameters": _to_plain(model.parameters),
        "scorer": {"kind": scorer.kind, "settings": scorer.settings()},
        "provenance": {
            _CATALOG: _catalog_source(model.facts),
            **{name: part.source for name, part in scorer.stored.items() if name in {*parts, *listed}},
            **_scale_source(model.facts),
            **{f"public column {name}": SOURCE for name in model.public},
        },
        **({"public": list(model.public)} if texts else {}),
    }
    label["digest"] = _digest(label, arrays)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in ((_LABEL, json.dumps(label, indent=1).encode()), (_ARRAYS, arrays)):
            # A fixed time: two saves of one model are the same bytes, and the file does not say when.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _scale_source(facts: PublicFacts) -> dict[str, str]:
    return {"scale": f"{facts.low:g} to {facts.high:g}, {_CHOSEN}"} if CHOSEN_SCALE in facts.from_file else {}


def _catalog_source(facts: PublicFacts) -> str:
    if CHOSEN in facts.from_file:
        return _CHOSEN
    if N_ITEMS in facts.from_file:
        return "taken from the data without noise: may be published only if the catalog is public anyway"
    return "public: the item ids"


def _open(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the label and the packed arrays of a file whose digest fits."""
    if not path.is_file():
        raise FileError(f"{path} is not a file. Give the path of a model that `discreet fit` wrote.")
    try:
        most = max(_ALWAYS_ALLOWED, _MOST_GROWTH * path.stat().st_size)
        with zipfile.ZipFile(path) as archive:
            if sorted(archive.namelist()) != sorted((_LABEL, _ARRAYS)):
                raise DataError("It has other members than a model.")
            label = json.loads(read_member(archive, _LABEL, _MOST_LABEL))
            raw = read_member(archive, _ARRAYS, most)
    except DAMAGED as error:
        raise FileError(f"{path} is not a discreet model, or it is damaged.") from error
    if not isinstance(label, dict) or label.get("format") != FORMAT:
        raise FileError(f"{path} is not a discreet model.")
    if label.get("version") not in (VERSION, _WITH_COLUMNS):
        raise FileError(f"{path} was written by another version of discreet than this one.")
    if label.pop("digest", None) != _digest(label, raw):
        raise FileError(f"{path} was changed after it was written; its promise cannot be trusted.")
    if not _is_label(label):
        raise FileError(f"{path} is a discreet model, but this version cannot read its label.")
    return label, raw


def _is_label(label: Mapping[str, Any]) -> bool:
    """Tell whether a label has the parts that its readers show, each of the kind that they expect."""
    parts = ("guarantee", "facts", "parameters", "scorer", "provenance")
    if not isinstance(label.get("name"), str) or not all(isinstance(label.get(one), dict) for one in parts):
        return False
    return all(isinstance(origin, str) for origin in label["provenance"].values())


def _digest(label: Mapping[str, Any], arrays: bytes) -> str:
    text = json.dumps(label, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(
        hashlib.sha256(text.encode(errors="surrogatepass")).digest() + hashlib.sha256(arrays).digest()
    ).hexdigest()


def _to_plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: "inf" if value == float("inf") else value for name, value in parameters.items()}


def _from_plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): float("inf") if value == "inf" else value for name, value in parameters.items()}
