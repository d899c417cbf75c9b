"""Build a graph for ONNX node by node: constants, quantized vectors, small linear systems, and histories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.export.bundle.encoding import int8_vectors, int8_weights
from discreet.export.bundle.parts import VECTORS, ScorePart
from discreet.models.fitted import FittedModel

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
