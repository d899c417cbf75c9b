"""Write the parts of a model as a graph for ONNX Runtime: histories go in, scores and lists come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from discreet.core import ExtraMissing, Indices
from discreet.export.bundle.parts import VECTORS, ScorePart, int8_vectors, int8_weights, parts_of
from discreet.models import LEAST, LOGISTIC, MOST, PER_UNIT, FittedModel

OPSET, IR_VERSION = 18, 9
# Numbers of the types that `Cast` takes.
FLOAT, INT64, DOUBLE = 1, 7, 11

#: The name of a value in the graph.
Name = str


class OnnxGraph:
    """Nodes and constants of a graph. Frequent operations have a method; `add` is for all others."""

    def __init__(self, onnx: Any, precision: str) -> None:
        self.onnx, self.precision = onnx, precision
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.count = 0

    def add(self, kind: str, *inputs: Name, out: Name | None = None, **attributes: Any) -> Name:
        """Add a node with one output and return its name."""
        self.count += 1
        name = out or f"{kind.lower()}_{self.count}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, name: Name | None = None, dtype: Any = np.float64) -> Name:
        """Add a constant and return its name."""
        self.count += 1
        name = name or f"constant_{self.count}"
        array = np.asarray(value, dtype=dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def whole(self, *values: int) -> Name:
        """Add whole numbers, which say shapes, axes and places."""
        return self.constant(values, dtype=np.int64)

    def cast(self, value: Name, to: int) -> Name:
        """Change the type of a value."""
        return self.add("Cast", value, to=to)

    def single(self, value: Name) -> Name:
        """Round to single precision."""
        return self.cast(self.cast(value, FLOAT), DOUBLE)

    def flat(self, value: Name) -> Name:
        """Put all rows after each other."""
        return self.add("Reshape", value, self.whole(-1))

    def sum(self, value: Name, axis: int) -> Name:
        """Add up along an axis, which stays."""
        return self.add("ReduceSum", value, self.whole(axis), keepdims=1)

    def turned(self, value: Name) -> Name:
        """Exchange the last two axes of three."""
        return self.add("Transpose", value, perm=[0, 2, 1])

    def vectors(self, part: ScorePart) -> Name:
        """Add the item vectors of a part in the graph's precision; they are double from here on."""
        array = part.arrays[VECTORS].astype(np.float64)
        if self.precision == "int8":
            whole, rows, columns = int8_vectors(array)
            scaled = self.add("Mul", self._short(whole), self._short(rows[:, None].astype(np.float32)))
            return self.add("Mul", scaled, self._short(columns.astype(np.float32)))
        return self._short(array.astype(self.precision))

    def weights(self, part: ScorePart, place: Name) -> Name:
        """Return single weights between items, as they are stored in the graph's precision."""
        values: Any = part.arrays["values"].astype(np.float64)
        whole = int8_weights(values, part.arrays["starts"])[0] if self.precision == "int8" else values
        found = self.add("Gather", self.constant(whole, dtype=self.precision), place)
        return self.cast(found, DOUBLE)

    def _short(self, array: Any) -> Name:
        name = self.constant(array, dtype=array.dtype)
        return name if array.dtype == np.float64 else self.cast(name, DOUBLE)

    def solved(self, system: Name, size: int) -> Name:
        """Solve positive definite systems, whose right sides are their last columns: [users, size]."""
        make, inner = self.onnx.helper, OnnxGraph(self.onnx, self.precision)
        inner.count = self.count + 1_000_000
        row = inner.add("Gather", "before", inner.add("Reshape", "step", inner.whole(1)), axis=1)
        pivot = inner.add("Gather", row, inner.add("Reshape", "step", inner.whole(1)), axis=2)
        row = inner.add("Div", row, pivot)
        column = inner.add("Gather", "before", inner.add("Reshape", "step", inner.whole(1)), axis=2)
        at = inner.constant(np.arange(size)[None, :, None], dtype=np.int64)
        here = inner.add("Equal", at, inner.add("Reshape", "step", inner.whole(1)))
        rest = inner.add("Sub", "before", inner.add("Mul", column, row))
        inner.add("Where", here, row, rest, out="after")
        inner.add("Identity", "going", out="go")
        kinds = self.onnx.TensorProto
        shape = ["people", size, size + 1]
        body = make.make_graph(
            inner.nodes,
            "eliminate",
            [
                make.make_tensor_value_info("step", kinds.INT64, []),
                make.make_tensor_value_info("going", kinds.BOOL, []),
                make.make_tensor_value_info("before", kinds.DOUBLE, shape),
            ],
            [
                make.make_tensor_value_info("go", kinds.BOOL, []),
                make.make_tensor_value_info("after", kinds.DOUBLE, shape),
            ],
            inner.constants,
        )
        steps, going = self.constant(size, dtype=np.int64), self.constant(True, dtype=np.bool_)
        done = self.add("Loop", steps, going, system, body=body)
        return self.add("Gather", done, self.constant(size, dtype=np.int64), axis=2)

    def file(self, people: OnnxPeople, model: FittedModel) -> Any:
        """Return the whole model with its inputs, outputs and label."""
        make, kinds = self.onnx.helper, self.onnx.TensorProto
        info = make.make_tensor_value_info
        rows = ["people", "length"]
        inputs = [info("items", kinds.INT64, rows)]
        inputs += [info("ratings", kinds.FLOAT, rows)] if people.rated else []
        inputs += [info("k", kinds.INT64, [1])]
        inputs += [info(name, kinds.BOOL, [1]) for name in ("ordered", "exclude_seen")]
        # The constant of the same name is its default.
        inputs += [info("missed_steps", kinds.DOUBLE, ["users_or_1", 1])] if people.paused else []
        outputs = [
            info("places", kinds.INT64, ["people", "listed"]),
            info("list_scores", kinds.FLOAT, ["people", "listed"]),
            info("scores", kinds.FLOAT, ["people", len(model.catalog)]),
        ]
        graph = make.make_graph(self.nodes, "recommend", inputs, outputs, self.constants)
        whole = make.make_model(
            graph,
            producer_name="discreet",
            opset_imports=[make.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        make.set_model_props(whole, {"name": model.name, "label": model.guarantee.sentence()})
        self.onnx.checker.check_model(whole)
        return whole


class OnnxPeople:
    """The graph's inputs: what it knows of the histories."""

    def __init__(self, graph: OnnxGraph, *, rated: bool, paused: bool) -> None:
        self.graph, self.rated, self.paused = graph, rated, paused
        if paused:
            graph.constant([[0.0]], "missed_steps")
        zero = graph.whole(0)
        # One more empty entry: without any history, rows would have no length.
        more = graph.whole(0, 0, 0, 1)
        self.items = graph.add("Pad", "items", more, graph.constant(-1, dtype=np.int64))
        self.present = graph.add("GreaterOrEqual", self.items, zero)
        self.mask = graph.cast(self.present, DOUBLE)
        self.safe = graph.add("Max", self.items, zero)
        self.length = graph.sum(self.mask, 1)
        self.least_one = graph.add("Max", self.length, graph.constant([1.0]))
        self.ratings = ""
        if rated:
            given = graph.add("Pad", graph.cast("ratings", DOUBLE), more, graph.constant(0.0))
            self.ratings = graph.add("Mul", given, self.mask)

    def recency(self, numbers: Mapping[str, Any], *, paused: bool = False) -> Name:
        """Return weights by rank from the latest item, which missed steps add to if it is `paused`.

        Without an order, or if nothing fades, they are even.
        """
        graph = self.graph
        even = graph.add("Pow", self.least_one, graph.constant([-numbers["evenly"]]))
        if not numbers["fading"]:
            return graph.add("Mul", even, self.mask)
        before = graph.add("CumSum", self.mask, graph.constant(1, dtype=np.int64))
        rank = graph.add("Add", graph.add("Sub", self.length, before), graph.constant([1.0]))
        rank = graph.add("Add", rank, "missed_steps") if paused else rank
        faded = graph.add("Pow", rank, graph.constant([-numbers["fading"]]))
        return graph.add("Mul", graph.add("Where", "ordered", faded, even), self.mask)

    def rows(self, vectors: Name) -> Name:
        """Return the vectors of all users' items, zero if missing: [users, length, factors]."""
        found = self.graph.add("Gather", vectors, self.safe, axis=0)
        return self.graph.add("Mul", found, self.graph.add("Unsqueeze", self.mask, self.graph.whole(2)))

    def weighed(self, weights: Name, rows: Name) -> Name:
        """Return the weighted sum of all users' rows: [users, factors]."""
        line = self.graph.add("Unsqueeze", weights, self.graph.whole(1))
        return self.graph.add("Squeeze", self.graph.add("MatMul", line, rows), self.graph.whole(1))


def summed(graph: OnnxGraph, people: OnnxPeople, parts: Sequence[ScorePart], items: int) -> Name:
    """Return the sum of all parts, [users, items]."""
    shape = graph.add("Concat", graph.add("Shape", "items", start=0, end=1), graph.whole(items), axis=0)
    total = graph.add("Expand", graph.constant([[0.0]]), shape)
    known: dict[str, Any] = {"items": items}
    for part in parts:
        total = _ADDED[part.kind](graph, people, part, total, known)
    return total


def _popularity(
    graph: OnnxGraph, people: OnnxPeople, part: ScorePart, total: Name, known: dict[str, Any]
) -> Name:
    return graph.add("Add", total, graph.constant(part.arrays["bias"]))


def _embedding(
    graph: OnnxGraph, people: OnnxPeople, part: ScorePart, total: Name, known: dict[str, Any]
) -> Name:
    weights, vectors = people.recency(part.numbers, paused=True), graph.vectors(part)
    place = people.weighed(graph.single(weights), people.rows(vectors))
    count = graph.sum(weights, 1)
    centered = graph.add("Sub", place, graph.add("Mul", count, graph.constant(part.arrays["mean"])))
    seen = graph.add("Mul", count, graph.constant(part.arrays["spread"]))
    sure = graph.add("Add", seen, graph.constant([part.numbers["ridge"]]))
    own = graph.add("Div", centered, sure)
    total = graph.add("Add", total, graph.add("MatMul", own, graph.add("Transpose", vectors)))
    shares = part.arrays["spread"] / max(part.arrays["spread"].sum(), np.finfo(np.float64).tiny)
    sure = graph.add("MatMul", graph.add("Div", seen, sure), graph.constant(shares[:, None]))
    return graph.add("Sub", total, graph.add("Mul", sure, graph.constant(part.arrays["penalty"][None])))


def _system(
    graph: OnnxGraph, people: OnnxPeople, rows: Name, targets: Name, prior: Name, weight: float
) -> Name:
    """Return normal equations with right sides: weight * rows' rows + prior, and rows' targets."""
    turned = graph.turned(rows)
    square = graph.add("Mul", graph.add("MatMul", turned, rows), graph.constant([weight]))
    right = graph.add("MatMul", turned, graph.add("Unsqueeze", targets, graph.whole(2)))
    return graph.add("Concat", graph.add("Add", square, prior), right, axis=2)


def _confidence(
    graph: OnnxGraph, people: OnnxPeople, part: ScorePart, total: Name, known: dict[str, Any]
) -> Name:
    vectors, numbers, size = graph.vectors(part), part.numbers, part.arrays[VECTORS].shape[1]
    prior = part.arrays["gram"] + numbers["regularization"] * np.eye(size)
    targets = graph.add("Mul", people.mask, graph.constant([1 + numbers["alpha"]]))
    given = (people.rows(vectors), targets, graph.constant(prior[None]), numbers["alpha"])
    own = graph.solved(_system(graph, people, *given), size)
    return graph.add("Add", total, graph.add("MatMul", own, graph.add("Transpose", vectors)))


def _ratings(
    graph: OnnxGraph, people: OnnxPeople, part: ScorePart, total: Name, known: dict[str, Any]
) -> Name:
    size = part.arrays["ridge"].size
    ones = graph.constant(np.ones((part.arrays["bias"].size, 1)))
    design = graph.add("Concat", ones, graph.vectors(part), axis=1)
    base = graph.constant(part.numbers["mean"] + part.arrays["bias"])
    expected = graph.add("Mul", graph.add("Gather", base, people.safe), people.mask)
    scale = graph.add("Pow", people.least_one, graph.constant([part.numbers["power"]]))
    ridge = graph.constant(np.diag(part.arrays["ridge"])[None])
    prior = graph.add("Mul", graph.add("Unsqueeze", scale, graph.whole(2)), ridge)
    targets = graph.add("Sub", people.ratings, expected)
    own = graph.solved(_system(graph, people, people.rows(design), targets, prior, 1.0), size)
    # Without ratings nothing is known of a user, also if a ridge is zero.
    some = graph.add("Greater", people.length, graph.constant([0.0]))
    own = graph.add("Where", some, own, graph.constant([[0.0]]))
    stars = graph.add("Add", graph.add("MatMul", own, graph.add("Transpose", design)), base)
    known |= {"own": own, "stars": graph.single(stars), "mean": part.numbers["mean"]}
    if part.numbers["weight"] == 0:
        return total
    return graph.add("Add", total, graph.add("Mul", stars, graph.constant([part.numbers["weight"]])))


def _liking(
    graph: OnnxGraph, people: OnnxPeople, part: ScorePart, total: Name, known: dict[str, Any]
) -> Name:
    if part.numbers["usual"] == "own":
        given = graph.add("Add", graph.sum(people.ratings, 1), graph.constant([known["mean"]]))
        usual = graph.add("Div", given, graph.add("Add", people.length, graph.constant([1.0])))
    else:
        numbers = part.arrays["usual"]
        product = graph.add("MatMul", known["own"], graph.constant(numbers[1:, None]))
        usual = graph.add("Add", product, graph.constant(numbers[:1]))
    above = graph.add("Sub", known["stars"], usual)
    above = graph.add("Div", above, graph.constant([part.numbers["deviation"]]))
    liked = _normal(graph, above, part) if part.numbers["link"] == "normal" else _logistic(graph, above)
    return graph.add(
        "Add", graph.single(total), graph.add("Mul", liked, graph.constant([part.numbers["weight"]]))
    )


def _logistic(graph: OnnxGraph, above: Name) -> Name:
    """Return the logarithm of the logistic function, without overflow."""
    turned = graph.add("Mul", above, graph.constant([-LOGISTIC]))
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", turned)))
    rest = graph.add("Log", graph.add("Add", small, graph.constant([1.0])))
    return graph.add("Neg", graph.add("Add", graph.add("Max", turned, graph.constant([0.0])), rest))


def _normal(graph: OnnxGraph, above: Name, part: ScorePart) -> Name:
    """Return the logarithm of the normal distribution, a cubic between the points of a table."""
    table, slopes = (graph.constant(part.arrays[name]) for name in ("table", "slopes"))
    one, two = graph.constant([1.0]), graph.constant([2.0])
    inside = graph.add("Max", graph.add("Min", above, graph.constant([MOST])), graph.constant([LEAST]))
    place = graph.add("Mul", graph.add("Sub", inside, graph.constant([LEAST])), graph.constant([PER_UNIT]))
    last = graph.whole(part.arrays["table"].size - 2)
    left = graph.add("Min", graph.cast(place, INT64), last)
    right = graph.add("Add", left, graph.whole(1))
    share = graph.add("Sub", place, graph.cast(left, DOUBLE))
    rest = graph.add("Sub", one, share)

    def end(at: Name, near: Name, far: Name, sign: str) -> Name:
        """Return the term of one end of the interval: near^2 ((1 + 2 far) value +- far slope)."""
        value = graph.add(
            "Mul", graph.add("Add", one, graph.add("Mul", two, far)), graph.add("Gather", table, at)
        )
        slope = graph.add("Mul", far, graph.add("Gather", slopes, at))
        return graph.add("Mul", graph.add("Mul", near, near), graph.add(sign, value, slope))

    found = graph.add("Add", end(left, rest, share, "Add"), end(right, share, rest, "Sub"))
    below = graph.add("Min", above, graph.constant([LEAST]))
    square = graph.add("Mul", below, below)
    log = graph.add("Log", graph.add("Mul", below, graph.constant([-np.sqrt(2 * np.pi)])))
    terms = graph.add("Div", graph.constant([2.5]), graph.add("Mul", square, square))
    for term in (graph.add("Div", one, square), graph.add("Div", square, two), log):
        terms = graph.add("Sub", terms, term)
    return graph.add("Where", graph.add("Less", above, graph.constant([LEAST])), terms, found)


def _from_items(
    graph: OnnxGraph, people: OnnxPeople, part: ScorePart, total: Name, known: dict[str, Any]
) -> Name:
    weights = people.recency(part.numbers)
    sums = _row_sums(graph, people, part, np.arange(part.arrays["starts"].size - 1), weights)
    return graph.add("Add", total, graph.add("Mul", sums, graph.constant([part.numbers["weight"]])))


def _next_items(
    graph: OnnxGraph, people: OnnxPeople, part: ScorePart, total: Name, known: dict[str, Any]
) -> Name:
    """Mix the probabilities of some items with what the weights of a history's items say of them."""
    items = part.arrays["items"].astype(np.int64)
    rows = np.full(known["items"], -1)
    rows[items] = np.arange(items.size)
    weights = people.recency(part.numbers, paused=True)
    follows = graph.add("Max", _row_sums(graph, people, part, rows, weights), graph.constant([0.0]))
    sums = graph.sum(follows, 1)
    speaks = graph.add("Greater", sums, graph.constant([0.0]))
    base = graph.add("Gather", total, graph.constant(items, dtype=np.int64), axis=1)
    most = graph.add("ReduceMax", base, graph.whole(1), keepdims=1)
    exponents = graph.add("Exp", graph.add("Sub", base, most))
    together = graph.add("Add", graph.add("Log", graph.sum(exponents, 1)), most)
    share = graph.add("Div", follows, graph.add("Where", speaks, sums, graph.constant([1.0])))
    new = graph.add("Add", graph.add("Log", share), together)
    one = graph.constant([1.0])
    damping = graph.add("Sqrt", graph.add("Add", "missed_steps", one))
    blend = graph.add("Div", graph.constant([part.numbers["blend"]]), damping)
    new = graph.add("Add", new, graph.add("Log", blend))
    kept = graph.add("Log", graph.add("Sub", one, blend))
    mixed = _log_of_sum(graph, graph.add("Add", base, kept), new)
    mixed = graph.add("Where", speaks, mixed, base)
    others = graph.add("Where", speaks, graph.add("Add", total, kept), total)
    where = graph.add("Expand", graph.constant(items[None], dtype=np.int64), graph.add("Shape", base))
    return graph.add("ScatterElements", others, where, mixed, axis=1)


def _log_of_sum(graph: OnnxGraph, one: Name, other: Name) -> Name:
    """Return the logarithm of a sum of two exponentials; the second may be minus infinity."""
    apart = graph.add("Exp", graph.add("Neg", graph.add("Abs", graph.add("Sub", one, other))))
    rest = graph.add("Log", graph.add("Add", apart, graph.constant([1.0])))
    return graph.add("Add", graph.add("Max", one, other), rest)


def _row_sums(graph: OnnxGraph, people: OnnxPeople, part: ScorePart, rows: Indices, weights: Name) -> Name:
    """Return the sum of the rows of each user's items by their `weights`, [users, columns].

    `rows` has the row of the part for each item of the catalog, -1 for none. Sums are made entry by entry:
    a table of all items by all would be too large.
    """
    starts = part.arrays["starts"].astype(np.int64)
    width = starts.size - 1
    has = rows >= 0
    flat = graph.flat(people.safe)
    weights = graph.flat(graph.single(weights))
    if graph.precision == "int8":
        scales = int8_weights(part.arrays["values"].astype(np.float64), starts)[1]
        by_item = graph.constant(np.where(has, scales[rows], 0.0))
        weights = graph.add("Mul", weights, graph.add("Gather", by_item, flat))
    lengths = graph.constant(np.where(has, (starts[1:] - starts[:-1])[rows], 0), dtype=np.int64)
    held = graph.flat(graph.cast(people.present, INT64))
    owner, step = _entries(graph, graph.add("Mul", graph.add("Gather", lengths, flat), held))
    first = graph.constant(np.where(has, starts[:-1][rows], 0), dtype=np.int64)
    place = graph.add("Add", graph.add("Gather", graph.add("Gather", first, flat), owner), step)
    values = graph.add("Mul", graph.weights(part, place), graph.add("Gather", weights, owner))
    length = graph.add("Shape", people.items, start=1, end=2)
    person = graph.add("Mul", graph.add("Div", owner, length), graph.whole(width))
    kind = np.uint16 if width < 1 << 16 else np.int32
    columns = graph.constant(part.arrays["columns"], dtype=kind)
    where = graph.add("Add", person, graph.cast(graph.add("Gather", columns, place), INT64))
    people_count = graph.add("Shape", "items", start=0, end=1)
    room = graph.add("Expand", graph.constant([0.0]), graph.add("Mul", people_count, graph.whole(width)))
    added = graph.add("ScatterElements", room, where, values, axis=0, reduction="add")
    return graph.add("Reshape", added, graph.whole(-1, width))


def _entries(graph: OnnxGraph, lengths: Name) -> tuple[Name, Name]:
    """Return, for all entries of rows of these lengths, whose row each belongs to and its place there."""
    begins = graph.add("Sub", graph.add("CumSum", lengths, graph.constant(0, dtype=np.int64)), lengths)
    count = graph.add("ReduceSum", lengths, keepdims=1)
    # A mark where each row begins; added up, they count rows. One more place is for empty rows at the end.
    room = graph.add("Expand", graph.whole(0), graph.add("Add", count, graph.whole(1)))
    marked = graph.add("Expand", graph.whole(1), graph.add("Shape", begins))
    marks = graph.add("ScatterElements", room, begins, marked, axis=0, reduction="add")
    owner = graph.add("Sub", graph.add("CumSum", marks, graph.constant(0, dtype=np.int64)), graph.whole(1))
    owner = graph.add("Slice", owner, graph.whole(0), count)
    zero, one = (graph.constant(value, dtype=np.int64) for value in (0, 1))
    every = graph.add("Range", zero, graph.add("Squeeze", count), one)
    return owner, graph.add("Sub", every, graph.add("Gather", begins, owner))


_ADDED: Mapping[str, Callable[[OnnxGraph, OnnxPeople, ScorePart, Name, dict[str, Any]], Name]] = {
    "popularity": _popularity,
    "embedding": _embedding,
    "confidence": _confidence,
    "item-item": _from_items,
    "next-items": _next_items,
    "ratings": _ratings,
    "liking": _liking,
}


def graph_of(model: FittedModel, *, precision: str = "float64") -> bytes:
    """Return the graph as a file; vectors and weights between items may be quantized.

    Raises:
        ParameterError: The model's lists aren't a sum of parts, or the extra is missing.
    """
    parts = parts_of(model)
    try:
        onnx: Any = import_module("onnx")
    except ImportError as error:
        raise ExtraMissing(package="onnx", extra="discreet[onnx]") from error
    graph = OnnxGraph(onnx, precision)
    paused = any(part.kind == "embedding" for part in parts)
    people = OnnxPeople(graph, rated=model.scorer.needs_ratings, paused=paused)
    scores = graph.cast(summed(graph, people, parts, len(model.catalog)), FLOAT)
    _listed(graph, people, scores, len(model.catalog))
    content: bytes = graph.file(people, model).SerializeToString()
    return content


def _listed(graph: OnnxGraph, people: OnnxPeople, scores: Name, items: int) -> None:
    """Add the outputs: all scores, and the best items that were not seen; of equal ones the first."""
    graph.add("Identity", scores, out="scores")
    # Entries that are not there mark a column of their own, which is cut off again.
    more = graph.add("Pad", scores, graph.whole(0, 0, 0, 1), graph.constant(0.0, dtype=np.float32))
    seen = graph.add("Where", people.present, people.items, graph.whole(items))
    gone = graph.add("Expand", graph.constant([-np.inf], dtype=np.float32), graph.add("Shape", seen))
    left = graph.add("ScatterElements", more, seen, gone, axis=1)
    left = graph.add("Slice", left, graph.whole(0), graph.whole(items), graph.whole(1))
    ranked = graph.add("Where", "exclude_seen", left, scores)
    wanted = graph.add("Min", "k", graph.whole(items))
    graph.nodes.append(
        graph.onnx.helper.make_node("TopK", [ranked, wanted], ["list_scores", "places"], axis=1)
    )
