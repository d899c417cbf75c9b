"""Write the parts of a model as a graph for ONNX Runtime: histories go in, scores and lists come out.

The graph takes `items`, places in the catalog with one row a person, oldest first; -1 fills rows that are
shorter. Models of ratings also take `ratings` of the same shape. `k` says how long lists are, `ordered`
whether the order of rows means anything, `exclude_seen` whether a person's own items stay out. It returns
`places` and `list_scores`, the best items of each person, and `scores` of all items. It computes in double
precision and compares in single, as `recommend` does. A place whose score is minus infinity fills a list that
has no more items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from discreet.core.checks import ParameterError
from discreet.models.bundle.encoding import int8_vectors, int8_weights
from discreet.models.bundle.parts import VECTORS, ScorePart, parts_of
from discreet.models.fitted import FittedModel
from discreet.models.scorers.counts import LOGISTIC
from discreet.models.scorers.log_chance import LEAST, MOST, PER_UNIT

OPSET, IR_VERSION = 18, 9
_EXTRA = "This needs onnx. Install it with `pip install 'discreet[onnx]'`."
# Numbers of the types that `Cast` takes.
_FLOAT, _INT64, _DOUBLE = 1, 7, 11

Name = str


def graph_of(model: FittedModel, *, precision: str = "float64") -> bytes:
    """Return the graph as a file; vectors and weights between items may be quantized.

    Raises:
        ParameterError: The model's lists are no sum of parts, or the extra is missing.
    """
    parts = parts_of(model)
    try:
        onnx: Any = import_module("onnx")
    except ImportError as error:
        raise ParameterError(_EXTRA) from error
    graph = Graph(onnx, precision)
    people = _People(graph, rated=model.scorer.needs_ratings)
    scores = graph.cast(_summed(graph, people, parts, len(model.catalog)), _FLOAT)
    _listed(graph, people, scores, len(model.catalog))
    content: bytes = graph.file(people, model).SerializeToString()
    return content


class Graph:
    """Collect nodes and constants; a method for what is used often, `add` for all else."""

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
        return self.cast(self.cast(value, _FLOAT), _DOUBLE)

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
        return self.cast(found, _DOUBLE)

    def _short(self, array: Any) -> Name:
        name = self.constant(array, dtype=array.dtype)
        return name if array.dtype == np.float64 else self.cast(name, _DOUBLE)

    def solved(self, system: Name, size: int) -> Name:
        """Solve positive definite systems, whose right sides are their last columns: [people, size]."""
        make, inner = self.onnx.helper, Graph(self.onnx, self.precision)
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

    def file(self, people: _People, model: FittedModel) -> Any:
        """Return the whole model with its inputs, outputs and label."""
        make, kinds = self.onnx.helper, self.onnx.TensorProto
        info = make.make_tensor_value_info
        rows = ["people", "length"]
        inputs = [info("items", kinds.INT64, rows)]
        inputs += [info("ratings", kinds.FLOAT, rows)] if people.rated else []
        inputs += [info("k", kinds.INT64, [1])]
        inputs += [info(name, kinds.BOOL, [1]) for name in ("ordered", "exclude_seen")]
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


class _People:
    """Hold what the graph knows of the histories that come in."""

    def __init__(self, graph: Graph, *, rated: bool) -> None:
        self.graph, self.rated = graph, rated
        zero = graph.whole(0)
        self.present = graph.add("GreaterOrEqual", "items", zero)
        self.mask = graph.cast(self.present, _DOUBLE)
        self.safe = graph.add("Max", "items", zero)
        self.length = graph.sum(self.mask, 1)
        self.least_one = graph.add("Max", self.length, graph.constant([1.0]))
        self.ratings = graph.add("Mul", graph.cast("ratings", _DOUBLE), self.mask) if rated else ""

    def recency(self, numbers: Mapping[str, Any]) -> Name:
        """Return weights by rank from the latest item, or even ones for histories without an order."""
        graph = self.graph
        before = graph.add("CumSum", self.mask, graph.constant(1, dtype=np.int64))
        rank = graph.add("Add", graph.add("Sub", self.length, before), graph.constant([1.0]))
        faded = graph.add("Pow", rank, graph.constant([-numbers["fading"]]))
        even = graph.add("Pow", self.least_one, graph.constant([-numbers["evenly"]]))
        return graph.add("Mul", graph.add("Where", "ordered", faded, even), self.mask)

    def rows(self, vectors: Name) -> Name:
        """Return the vectors of everybody's items, zero where there is none: [people, length, factors]."""
        found = self.graph.add("Gather", vectors, self.safe, axis=0)
        return self.graph.add("Mul", found, self.graph.add("Unsqueeze", self.mask, self.graph.whole(2)))

    def weighed(self, weights: Name, rows: Name) -> Name:
        """Return the weighted sum of everybody's rows: [people, factors]."""
        line = self.graph.add("Unsqueeze", weights, self.graph.whole(1))
        return self.graph.add("Squeeze", self.graph.add("MatMul", line, rows), self.graph.whole(1))


def _summed(graph: Graph, people: _People, parts: Sequence[ScorePart], items: int) -> Name:
    """Return the sum of all parts, [people, items]."""
    shape = graph.add("Concat", graph.add("Shape", "items", start=0, end=1), graph.whole(items), axis=0)
    total = graph.add("Expand", graph.constant([[0.0]]), shape)
    known: dict[str, Any] = {}
    for part in parts:
        total = _ADDED[part.kind](graph, people, part, total, known)
    return total


def _popularity(graph: Graph, people: _People, part: ScorePart, total: Name, known: dict[str, Any]) -> Name:
    return graph.add("Add", total, graph.constant(part.arrays["bias"]))


def _embedding(graph: Graph, people: _People, part: ScorePart, total: Name, known: dict[str, Any]) -> Name:
    weights, vectors = people.recency(part.numbers), graph.vectors(part)
    place = people.weighed(graph.single(weights), people.rows(vectors))
    count = graph.sum(weights, 1)
    centered = graph.add("Sub", place, graph.add("Mul", count, graph.constant(part.arrays["mean"])))
    spread = graph.add("Mul", count, graph.constant(part.arrays["spread"]))
    own = graph.add("Div", centered, graph.add("Add", spread, graph.constant([part.numbers["ridge"]])))
    return graph.add("Add", total, graph.add("MatMul", own, graph.add("Transpose", vectors)))


def _system(graph: Graph, people: _People, rows: Name, targets: Name, prior: Name, weight: float) -> Name:
    """Return normal equations with right sides: weight * rows' rows + prior, and rows' targets."""
    turned = graph.turned(rows)
    square = graph.add("Mul", graph.add("MatMul", turned, rows), graph.constant([weight]))
    right = graph.add("MatMul", turned, graph.add("Unsqueeze", targets, graph.whole(2)))
    return graph.add("Concat", graph.add("Add", square, prior), right, axis=2)


def _confidence(graph: Graph, people: _People, part: ScorePart, total: Name, known: dict[str, Any]) -> Name:
    vectors, numbers, size = graph.vectors(part), part.numbers, part.arrays[VECTORS].shape[1]
    prior = part.arrays["gram"] + numbers["regularization"] * np.eye(size)
    targets = graph.add("Mul", people.mask, graph.constant([1 + numbers["alpha"]]))
    given = (people.rows(vectors), targets, graph.constant(prior[None]), numbers["alpha"])
    own = graph.solved(_system(graph, people, *given), size)
    return graph.add("Add", total, graph.add("MatMul", own, graph.add("Transpose", vectors)))


def _ratings(graph: Graph, people: _People, part: ScorePart, total: Name, known: dict[str, Any]) -> Name:
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
    # Without ratings nothing is known of a person, also where a ridge is zero.
    some = graph.add("Greater", people.length, graph.constant([0.0]))
    own = graph.add("Where", some, own, graph.constant([[0.0]]))
    stars = graph.add("Add", graph.add("MatMul", own, graph.add("Transpose", design)), base)
    known |= {"own": own, "stars": graph.single(stars), "mean": part.numbers["mean"]}
    if part.numbers["weight"] == 0:
        return total
    return graph.add("Add", total, graph.add("Mul", stars, graph.constant([part.numbers["weight"]])))


def _liking(graph: Graph, people: _People, part: ScorePart, total: Name, known: dict[str, Any]) -> Name:
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


def _logistic(graph: Graph, above: Name) -> Name:
    """Return the logarithm of the logistic function, without overflow."""
    turned = graph.add("Mul", above, graph.constant([-LOGISTIC]))
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", turned)))
    rest = graph.add("Log", graph.add("Add", small, graph.constant([1.0])))
    return graph.add("Neg", graph.add("Add", graph.add("Max", turned, graph.constant([0.0])), rest))


def _normal(graph: Graph, above: Name, part: ScorePart) -> Name:
    """Return the logarithm of the normal distribution, a cubic between the points of a table."""
    table, slopes = (graph.constant(part.arrays[name]) for name in ("table", "slopes"))
    one, two = graph.constant([1.0]), graph.constant([2.0])
    inside = graph.add("Max", graph.add("Min", above, graph.constant([MOST])), graph.constant([LEAST]))
    place = graph.add("Mul", graph.add("Sub", inside, graph.constant([LEAST])), graph.constant([PER_UNIT]))
    last = graph.whole(part.arrays["table"].size - 2)
    left = graph.add("Min", graph.cast(place, _INT64), last)
    right = graph.add("Add", left, graph.whole(1))
    share = graph.add("Sub", place, graph.cast(left, _DOUBLE))
    rest = graph.add("Sub", one, share)

    def end(at: Name, near: Name, far: Name, sign: str) -> Name:
        """Return what one end of the interval says: near^2 ((1 + 2 far) value +- far slope)."""
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


def _from_items(graph: Graph, people: _People, part: ScorePart, total: Name, known: dict[str, Any]) -> Name:
    """Add the rows of everybody's items: entry by entry, without a table of all items by all."""
    starts, columns = part.arrays["starts"].astype(np.int64), part.arrays["columns"]
    items = starts.size - 1
    flat = graph.flat(people.safe)
    weights = graph.flat(graph.single(people.recency(part.numbers)))
    weights = graph.add("Mul", weights, graph.constant([part.numbers["weight"]]))
    if graph.precision == "int8":
        scales = graph.constant(int8_weights(part.arrays["values"].astype(np.float64), starts)[1])
        weights = graph.add("Mul", weights, graph.add("Gather", scales, flat))
    held = graph.flat(graph.cast(people.present, _INT64))
    lengths = graph.add("Gather", graph.constant(starts[1:] - starts[:-1], dtype=np.int64), flat)
    owner, step = _entries(graph, graph.add("Mul", lengths, held))
    first = graph.add("Gather", graph.constant(starts[:-1], dtype=np.int64), flat)
    place = graph.add("Add", graph.add("Gather", first, owner), step)
    values = graph.add("Mul", graph.weights(part, place), graph.add("Gather", weights, owner))
    width = graph.add("Shape", "items", start=1, end=2)
    person = graph.add("Mul", graph.add("Div", owner, width), graph.whole(items))
    kind = np.uint16 if items < 1 << 16 else np.int32
    column = graph.cast(graph.add("Gather", graph.constant(columns, dtype=kind), place), _INT64)
    where = graph.add("Add", person, column)
    added = graph.add("ScatterElements", graph.flat(total), where, values, axis=0, reduction="add")
    return graph.add("Reshape", added, graph.whole(-1, items))


def _entries(graph: Graph, lengths: Name) -> tuple[Name, Name]:
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


_ADDED: Mapping[str, Callable[[Graph, _People, ScorePart, Name, dict[str, Any]], Name]] = {
    "popularity": _popularity,
    "embedding": _embedding,
    "confidence": _confidence,
    "item-item": _from_items,
    "ratings": _ratings,
    "liking": _liking,
}


def _listed(graph: Graph, people: _People, scores: Name, items: int) -> None:
    """Add the outputs: all scores, and the best items that were not seen; of equal ones the first."""
    graph.add("Identity", scores, out="scores")
    # Entries that are not there mark a column of their own, which is cut off again.
    more = graph.add("Pad", scores, graph.whole(0, 0, 0, 1), graph.constant(0.0, dtype=np.float32))
    seen = graph.add("Where", people.present, "items", graph.whole(items))
    gone = graph.add("Expand", graph.constant([-np.inf], dtype=np.float32), graph.add("Shape", seen))
    left = graph.add("ScatterElements", more, seen, gone, axis=1)
    left = graph.add("Slice", left, graph.whole(0), graph.whole(items), graph.whole(1))
    ranked = graph.add("Where", "exclude_seen", left, scores)
    wanted = graph.add("Min", "k", graph.whole(items))
    graph.nodes.append(
        graph.onnx.helper.make_node("TopK", [ranked, wanted], ["list_scores", "places"], axis=1)
    )
