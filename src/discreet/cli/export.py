"""`discreet export`: write item vectors for a vector store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.options.declared import AsJson, ModelFile
from discreet.cli.output.printing import emit, show


def export(
    file: ModelFile,
    out: Annotated[Path, typer.Option("--out", help="The folder to create.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="What to write besides the vectors: parquet (nothing), faiss or hnswlib. Or onnx: a graph "
            "from histories to lists instead of vectors.",
        ),
    ] = "parquet",
    as_json: AsJson = False,
) -> None:
    """Write item vectors, the label and an index for a vector store. This costs no privacy budget.

    The inner product of an item's vector and `model.search_vector(history)` is the score that lists are
    sorted by. For models of implicit feedback whose scores are such products.
    """
    from discreet.models.exporting import export_items
    from discreet.models.storage import load

    fitted = load(file)
    export_items(fitted, out, to)
    if as_json:
        emit({"folder": str(out), "to": to, "items": len(fitted.catalog), "name": fitted.name})
        return
    what = "a graph that ranks" if to == "onnx" else "vectors of"
    show(f"Written to {out}: {what} {len(fitted.catalog):,} items, and the label that goes with them.")
