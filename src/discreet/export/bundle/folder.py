"""Make the files of a bundle: the model in each precision, items, the label, an npm package and a page.

Everything is made from released numbers and public columns, so it costs no budget. Titles and names are
untrusted text: they are written as JSON, and the page shows them as text only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from discreet.core.checks import one_of
from discreet.core.errors import OutOfRange
from discreet.core.files import refuse_folder, write_folder
from discreet.export.bundle.encoding import MOST_BYTES, PRECISIONS, encode
from discreet.export.bundle.parts import ScorePart, parts_of
from discreet.export.bundle.scoring import agreement, drawn_histories, own_lists
from discreet.models.errors import BadPackageName, BundleTooLarge
from discreet.models.fitted import FittedModel

FORMAT, VERSION = "discreet-bundle", 1
PACKAGE = "discreet-recommendations"
INDEX, WORKER, MANIFEST, GRAPH = "index.html", "worker.js", "bundle.json", "model.onnx"
# What npm allows as a name.
_NPM_NAME = re.compile(r"(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")
_MOST_NAME, _MOST_TITLE = 214, 200
# The largest whole number that JavaScript distinguishes from its neighbors.
_SAFE = 2**53 - 1
# Files that a page without a connection does not need.
_NOT_KEPT = (".d.ts", ".json.map", ".onnx", ".md", "package.json")


def write_bundle(model: FittedModel, out: Path, *, force: bool = False, **options: Any) -> dict[str, Any]:
    """Write a folder with all files of a bundle; return its manifest. `force` replaces a bundle."""
    replaces = is_bundle if force else None
    refuse_folder(out, replaces=replaces)
    made = bundle_files(model, **options)
    write_folder(out, made, replaces=replaces)
    manifest: dict[str, Any] = json.loads(made[MANIFEST])
    return {**manifest, "bytes": sum(map(len, made.values()))}


def is_bundle(folder: Path) -> bool:
    """Return whether a folder is a bundle and has nothing else in it."""
    try:
        ours = json.loads((folder / MANIFEST).read_bytes())["format"] == FORMAT
        found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
        return bool(ours) and found <= bundle_names(tuple(PRECISIONS)) | {GRAPH}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return False


def write_graph(model: FittedModel, out: Path, *, replaces: Callable[[Path], bool] | None = None) -> None:
    """Write a folder: a graph for ONNX in full precision, the items that its places name, the label."""
    from discreet.export.onnx.graph import graph_of

    made = {GRAPH: graph_of(model), "items.json": _json(_items(model)), "label.json": _json(_label(model))}
    write_folder(out, made, replaces=replaces)


def bundle_files(
    model: FittedModel,
    *,
    precisions: Sequence[str] = ("int8", "float16"),
    title: str | None = None,
    package: str = PACKAGE,
    onnx: bool = False,
) -> dict[str, bytes]:
    """Return every file by its path in the folder; the page opens the first of the precisions.

    Raises:
        ParameterError: The model's lists cannot be made on a device, or a setting is none.
    """
    _check(precisions, title, package)
    parts = parts_of(model)
    made = {f"model.{precision}.bin": encode(parts, _facts(model), precision) for precision in precisions}
    made["items.json"] = _json(_items(model))
    made["label.json"] = _json(_label(model))
    if len(made["items.json"]) > MOST_BYTES:
        raise BundleTooLarge(
            what="The table of titles", megabytes=len(made["items.json"]) / 1e6, most=MOST_BYTES / 1e6
        )
    made[MANIFEST] = _json(_manifest(model, parts, precisions, title, made))
    if onnx:
        from discreet.export.onnx.graph import graph_of

        made[GRAPH] = graph_of(model, precision=precisions[0])
    made |= web_files("shared", "page")
    made[INDEX] = made.pop(f"page/{INDEX}")
    made["package.json"] = _json(_package(package))
    made["README.md"] = _readme(model, package).encode()
    made[WORKER] = _worker(made.pop(f"page/{WORKER}"), made, first=f"model.{precisions[0]}.bin")
    return made


def bundle_names(precisions: Sequence[str] = ("int8", "float16")) -> frozenset[str]:
    """Return the paths of a bundle without a graph, which do not depend on the model."""
    own = {INDEX, WORKER, MANIFEST, "items.json", "label.json", "package.json", "README.md"}
    pages = web_files("shared", "page").keys() - {f"page/{INDEX}", f"page/{WORKER}"}
    return frozenset(own | pages | {f"model.{precision}.bin" for precision in precisions})


def web_files(*folders: str) -> dict[str, bytes]:
    """Return the scripts, styles and pictures of these folders, by path."""
    web = files("discreet.export.bundle").joinpath("web")
    return {
        f"{folder}/{entry.name}": entry.read_bytes()
        for folder in folders
        for entry in web.joinpath(folder).iterdir()
        if entry.is_file()
    }


def device_file(model: FittedModel, precision: str = "float32") -> bytes:
    """Return the one file that a program on a device computes with."""
    return encode(parts_of(model), _facts(model), precision)


def _check(precisions: Sequence[str], title: str | None, package: str) -> None:
    if not precisions:
        raise OutOfRange(name="precisions", value=precisions, least=1)
    for precision in precisions:
        one_of("precision", precision, PRECISIONS)
    if title is not None and not 0 < len(title) <= _MOST_TITLE:
        raise OutOfRange(name="length of title", value=len(title or ""), least=1, most=_MOST_TITLE)
    fits = len(package) <= _MOST_NAME and _NPM_NAME.fullmatch(package)
    if not fits:
        raise BadPackageName(name=package)


def _facts(model: FittedModel) -> dict[str, Any]:
    """Return the header's entries for the whole model."""
    return {
        "items": len(model.catalog),
        "needs_ratings": model.scorer.needs_ratings,
        "ranked_by": model.scorer.ranked_by,
        "low": float(model.facts.low),
        "high": float(model.facts.high),
        "step": None if model.facts.step is None else float(model.facts.step),
        "positions": model.schema is not None and model.schema.has_positions,
    }


def _items(model: FittedModel) -> dict[str, Any]:
    """Return ids and titles; numbers that JavaScript would round are written as texts, all of them."""
    titles, ids = next(iter(model.public.values()), None), model.catalog.ids.tolist()
    if any(isinstance(one, int) and abs(one) > _SAFE for one in ids):
        ids = [str(one) for one in ids]
    return {"ids": ids, "titles": None if titles is None else list(titles)}


def _label(model: FittedModel) -> dict[str, Any]:
    promise = model.guarantee
    return {
        "name": model.name,
        "sentence": promise.sentence(),
        "rows": [list(row) for row in promise.rows()],
        "guarantee": promise.to_json(),
    }


def _manifest(
    model: FittedModel,
    parts: Sequence[ScorePart],
    precisions: Sequence[str],
    title: str | None,
    made: dict[str, bytes],
) -> dict[str, Any]:
    people = drawn_histories(model)
    wanted = own_lists(model, people)
    models = {
        precision: {
            "file": f"model.{precision}.bin",
            "bytes": len(made[f"model.{precision}.bin"]),
            **agreement(wanted, parts, precision, people).to_json(),
        }
        for precision in precisions
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "title": title,
        "items": len(model.catalog),
        "precision": precisions[0],
        "models": models,
    }


def _package(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "version": "1.0.0",
        "description": "Recommend on the device from a model with a privacy label: the history stays there.",
        "license": "UNLICENSED",
        "type": "module",
        "exports": {
            ".": {"types": "./shared/recommender.d.ts", "default": "./shared/recommender.js"},
            "./*": "./*",
        },
        "types": "./shared/recommender.d.ts",
        "sideEffects": False,
        "generator": f"discreet {version('discreet')}",
    }


_README = """# {package}

Recommendations that are computed where the history is. Made by `discreet model bundle` from a model of the
kind `{kind}` with {items:,} items; `label.json` states its guarantee.

```js
import {{ openBundle }} from "{package}";

const recommender = await openBundle();
// {history}, oldest first
const list = recommender.recommend(history, {{ k: 10 }});
```

`shared/recommender.d.ts` has the types. `index.html` is a page that works without a connection once it was
opened; any web server can serve this folder, over https or on localhost.
"""


def _readme(model: FittedModel, package: str) -> str:
    rated = model.scorer.needs_ratings
    history = "history: [id, rating] pairs" if rated else "history: ids of items, as in items.json"
    return _README.format(package=package, kind=model.name, items=len(model.catalog), history=history)


def _worker(template: bytes, made: dict[str, bytes], *, first: str) -> bytes:
    """Return the worker that keeps the page's files; its version changes whenever one of them does."""
    models = {name for name in made if name.endswith(".bin")} - {first}
    kept = sorted(name for name in made if not name.endswith(_NOT_KEPT) and name not in models)
    digest = hashlib.sha256()
    for name in kept:
        digest.update(f"{name} {len(made[name])} ".encode() + made[name])
    listed = json.dumps(["./", *kept])
    text = template.decode().replace('["@files@"]', listed).replace("@version@", digest.hexdigest()[:16])
    return text.encode()


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
