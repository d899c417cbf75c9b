"""Write the parts of a model as a graph for ONNX Runtime: histories go in, scores and lists come out.

The graph takes `items`, places in the catalog with one row per user, oldest first; -1 fills rows that are
shorter. Models of ratings also take `ratings` of the same shape. `k` states how long lists are, `ordered`
whether the order of rows means anything, `exclude_seen` whether a user's own items are excluded. Models that
serve by elapsed time take `missed_steps`, one row per user: how many of their usual steps have passed since
their latest item (`missed_steps` of the library); 0 if it isn't given. The graph returns
`places` and `list_scores`, the best items of each user, and `scores` of all items. It computes in double
precision and compares in single, as `recommend` does. A place whose score is minus infinity fills a list that
has no more items.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from discreet.core.errors import ExtraMissing
from discreet.export.bundle.parts import parts_of
from discreet.export.onnx.building import FLOAT, Name, OnnxGraph, OnnxPeople
from discreet.export.onnx.parts import summed
from discreet.models.fitted import FittedModel


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
