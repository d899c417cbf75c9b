"""`discreet model export`: write item vectors for a vector store, or fill one that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.errors import OptionMissing
from discreet.cli.options.declared import AsJson, ForceFolder, ModelFile
from discreet.cli.output.printing import emit, show


def export(
    file: ModelFile,
    out: Annotated[Path | None, typer.Option("--out", help="The folder to create.")] = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="What to write in addition to the vectors: parquet (nothing), faiss, hnswlib, pgvector, "
            "qdrant, or "
            "feast (a feature repository). Or onnx: a graph from histories to lists instead of vectors.",
        ),
    ] = "parquet",
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            envvar="DISCREET_EXPORT_URL",
            help="Fill a running server instead: postgresql://... (pgvector) or http://... (qdrant).",
        ),
    ] = None,
    name: Annotated[
        str,
        typer.Option(
            "--name",
            help="The table of pgvector, the collection of qdrant, or the project and view of feast.",
        ),
    ] = "items",
    force: ForceFolder = False,
    as_json: AsJson = False,
) -> None:
    """Write item vectors, the label, and an index for a vector store. This costs no privacy budget.

    Recommendations are sorted by the inner product of an item's vector and `model.search_vector(history)`.
    This works for models of implicit feedback whose scores are inner products. If noise allows it,
    user-factorization also has weights between items, which aren't vectors. `model.rerank` adds them.
    """
    from discreet.export.items import LIVE, export_items, load_items
    from discreet.models.storage import load

    if (out is None) == (url is None or to not in LIVE):
        raise OptionMissing(options=("--out FOLDER", "--url ADDRESS"))
    fitted = load(file)
    if out is not None:
        export_items(fitted, out, to, name=name, force=force)
    elif url is not None:
        load_items(fitted, url, to, name=name, force=force)
    place = str(out) if out is not None else f"the {to} server, as {name}"
    if as_json:
        where = {"folder": str(out)} if out is not None else {"table": name}
        told = {**where, "to": to, "items": len(fitted.catalog), "name": fitted.name}
        told["promise"] = fitted.guarantee.short()
        emit({**told, "leaves_out": None if to == "onnx" else fitted.scorer.search_leaves_out or None})
        return
    what = "a graph that ranks" if to == "onnx" else "vectors of"
    show(f"Written to {place}: {what} {len(fitted.catalog):,} items, with their label.")
    show(fitted.guarantee.short())
    # A graph contains everything that orders recommendations; vectors don't.
    if to != "onnx" and (left_out := fitted.scorer.search_leaves_out):
        show(
            f"The vectors don't include {left_out}. `model.rerank(history, found)` adds this to search "
            "results."
        )
