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
from typing import Any, NamedTuple

import numpy as np

from discreet.core import Floats, Indices, OutOfRange, one_of, refuse_folder, write_folder
from discreet.data import Interactions, Vocabulary
from discreet.export.bundle.parts import MOST_BYTES, PRECISIONS, VECTORS, ScorePart, decoded, encode, parts_of
from discreet.models import (
    LOGISTIC,
    BadPackageName,
    BundleTooLarge,
    FittedModel,
    best_places,
    damped,
    known_part,
    listable,
    log_chance,
    missed_steps,
    recency,
)
from discreet.solvers import FEW

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
    from discreet.export.onnx_graph import graph_of

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
        from discreet.export.onnx_graph import graph_of

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


K = 10
_PEOPLE, _SEED = 200, 7
_LENGTHS = (3, 40)


class ListAgreement(NamedTuple):
    """Agreement between lists of a bundle and of the model: shared places, and equal lists."""

    shared: float
    equal: float
    lists: int

    def to_json(self) -> dict[str, Any]:
        """Return the numbers, rounded down so that none is flattered."""
        return {
            "shared_at_10": np.floor(self.shared * 1e4) / 1e4,
            "equal_lists": np.floor(self.equal * 1e4) / 1e4,
            "lists": self.lists,
            "histories": "drawn from released numbers",
        }


def own_lists(model: FittedModel, people: Interactions) -> Indices:
    """Return the first places of each user's list, as `recommend` makes it."""
    found = []
    for start in range(0, people.n_users, FEW):
        some = people.span(start, min(start + FEW, people.n_users))
        rows = np.arange(some.n_users)
        worth = model.worth(some, rows).astype(np.float64)
        listable(worth, some, rows)
        found.append(best_places(worth, K))
    return np.concatenate(found)


def agreement(
    wanted: Indices, parts: Sequence[ScorePart], precision: str, people: Interactions
) -> ListAgreement:
    """Return how the lists from a file of this precision agree with those `wanted` for these users."""
    read, one_row = [decoded(part, precision) for part in parts], np.zeros(1, dtype=np.int64)
    shared, equal = 0.0, 0
    for row, ours in enumerate(wanted):
        person = people.span(row, row + 1)
        scores = scores_of(read, person)[None, :]
        listable(scores, person, one_row)
        theirs = best_places(scores, K)[0]
        shared += np.intersect1d(ours, theirs).size / max(ours.size, 1)
        equal += bool(np.array_equal(ours, theirs))
    return ListAgreement(shared / len(wanted), equal / len(wanted), len(wanted))


def drawn_histories(model: FittedModel, count: int = _PEOPLE) -> Interactions:
    """Return histories drawn by released popularity where the model has it, with ratings and an order."""
    random = np.random.default_rng(_SEED)
    items = len(model.catalog)
    weights = np.asarray(model.scorer.arrays().get("popularity", np.zeros(0)), dtype=np.float64)
    weights = np.maximum(weights, 1e-9) if weights.size == items else np.ones(items)
    lengths = np.minimum(random.integers(*_LENGTHS, size=count), max(items // 2, 1))
    chosen = [random.choice(items, n, replace=False, p=weights / weights.sum()) for n in lengths]
    facts = model.facts
    grid = np.linspace(facts.low, facts.high, 5) if facts.step is None else _steps(facts)
    people = np.repeat(np.arange(count), lengths)
    return Interactions.from_arrays(
        people,
        model.catalog.id_at(np.concatenate(chosen)).tolist(),
        random.choice(grid, people.size).astype(np.float32),
        np.concatenate([np.arange(n) for n in lengths]),
        catalog=model.catalog,
        people=Vocabulary.of(range(count)),
        facts=facts,
        name="drawn histories",
    )


def _steps(facts: Any) -> Floats:
    count = round((facts.high - facts.low) / facts.step) + 1
    grid: Floats = facts.low + facts.step * np.arange(count)
    return grid


def scores_of(parts: Sequence[ScorePart], person: Interactions) -> Floats:
    """Return the scores of all items for one user, from parts as a device reads them."""
    total, stars, own = np.zeros(person.n_items), np.zeros(0), np.zeros(0)
    for part in parts:
        if part.kind == "popularity":
            total = total + part.arrays["bias"]
        elif part.kind == "embedding":
            own, known = _embedded(part, person)
            total = total + (part.arrays[VECTORS] @ own - known * part.arrays["penalty"])
        elif part.kind == "confidence":
            total = total + part.arrays[VECTORS] @ _confident(part, person)
        elif part.kind == "item-item":
            total = total + _from_items(part, person)
        elif part.kind == "next-items":
            total = _blended(part, person, total)
        elif part.kind == "ratings":
            own, stars = _rated(part, person)
            total = total + part.numbers["weight"] * stars
        else:
            total = _single(total) + _liked(part, person, stars, own, parts)
    return _single(total)


def _single(numbers: Floats) -> Floats:
    """Round to single precision, as scores are compared in."""
    return numbers.astype(np.float32).astype(np.float64)


def _embedded(part: ScorePart, person: Interactions) -> tuple[Floats, float]:
    """Return a user's embedding, and the part of it that the history determines."""
    numbers = part.numbers
    weights = recency(person, numbers["fading"], numbers["evenly"], missed_steps(person))
    total, spread = weights.sum(), part.arrays["spread"]
    place = weights.astype(np.float32).astype(np.float64) @ part.arrays[VECTORS][person.items]
    own = (place - total * part.arrays["mean"]) / (total * spread + numbers["ridge"])
    return own, float(known_part(total[None], spread, numbers["ridge"])[0])


def _confident(part: ScorePart, person: Interactions) -> Floats:
    own, alpha = part.arrays[VECTORS][person.items], part.numbers["alpha"]
    if not len(own):
        return np.zeros(part.arrays[VECTORS].shape[1])
    normal = part.arrays["gram"] + alpha * own.T @ own
    normal = normal + part.numbers["regularization"] * np.eye(own.shape[1])
    found: Floats = np.linalg.solve(normal, (1 + alpha) * own.sum(axis=0))
    return found


def _from_items(part: ScorePart, person: Interactions) -> Floats:
    weights = recency(person, part.numbers["fading"], part.numbers["evenly"]).astype(np.float32)
    starts, total = part.arrays["starts"].astype(np.int64), np.zeros(person.n_items)
    for item, weight in zip(person.items, weights.tolist(), strict=True):
        span = slice(int(starts[item]), int(starts[item + 1]))
        np.add.at(total, part.arrays["columns"][span], weight * part.arrays["values"][span])
    total *= part.numbers["weight"]
    return total


def _blended(part: ScorePart, person: Interactions, scores: Floats) -> Floats:
    """Mix the probabilities of the part's items with what the history's items say of them."""
    items, starts = part.arrays["items"].astype(np.int64), part.arrays["starts"].astype(np.int64)
    rows = np.full(person.n_items, -1)
    rows[items] = np.arange(items.size)
    missed = missed_steps(person)
    weights = recency(person, part.numbers["fading"], part.numbers["evenly"], missed).astype(np.float32)
    blend = damped(part.numbers["blend"], missed)[0]
    # The library adds up in single precision, item after item.
    sums, values = np.zeros(items.size, dtype=np.float32), part.arrays["values"].astype(np.float32)
    for row, weight in zip(rows[person.items], weights, strict=True):
        span = slice(int(starts[row]), int(starts[row + 1])) if row >= 0 else slice(0)
        sums[part.arrays["columns"][span]] += weight * values[span]
    follows = np.maximum(sums, 0.0).astype(np.float64)
    if not follows.any():
        return scores
    base, kept = scores[items], np.log1p(-blend)
    together = np.log(np.exp(base - base.max()).sum()) + base.max()
    with np.errstate(divide="ignore"):
        new = np.log(follows / follows.sum()) + together + np.log(blend)
    found: Floats = scores + kept
    found[items] = np.logaddexp(base + kept, new)
    return found


def _rated(part: ScorePart, person: Interactions) -> tuple[Floats, Floats]:
    """Return a user's own bias and factors, and the stars of all items in single precision."""
    design = np.column_stack([np.ones(person.n_items), part.arrays[VECTORS]])
    base = part.numbers["mean"] + part.arrays["bias"]
    own = np.zeros(design.shape[1])
    if person.n_ratings:
        chosen = design[person.items]
        scale = max(person.n_ratings, 1) ** part.numbers["power"]
        normal = chosen.T @ chosen + np.diag(scale * part.arrays["ridge"])
        own = np.linalg.solve(normal, chosen.T @ (person.values - base[person.items]))
    return own, _single(base + design @ own)


def _liked(
    part: ScorePart, person: Interactions, stars: Floats, own: Floats, parts: Sequence[ScorePart]
) -> Floats:
    numbers = part.numbers
    if numbers["usual"] == "own":
        mean = next(one.numbers["mean"] for one in parts if one.kind == "ratings")
        usual = (float(person.values.sum(dtype=np.float64)) + mean) / (person.n_ratings + 1)
    else:
        usual = float(part.arrays["usual"][0] + part.arrays["usual"][1:] @ own)
    above = (stars - usual) / numbers["deviation"]
    liked = log_chance(above) if numbers["link"] == "normal" else -np.logaddexp(0.0, -LOGISTIC * above)
    found: Floats = numbers["weight"] * liked
    return found
