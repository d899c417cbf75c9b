"""`discreet model bundle`: write the files with which a browser or an app recommends by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.options.declared import AsJson, ForceFolder, ModelFile
from discreet.cli.output.printing import emit, show


def bundle(
    file: ModelFile,
    out: Annotated[Path, typer.Option("--out", help="The folder to create.")],
    precision: Annotated[
        list[str] | None,
        typer.Option(
            "--precision",
            help="How numbers are kept: int8, float16 or float32; repeatable. The page opens the first. "
            "Default: int8 and float16.",
        ),
    ] = None,
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Also write model.onnx, in the first precision; needs an extra.")
    ] = False,
    title: Annotated[str | None, typer.Option("--title", help="The heading of the page.")] = None,
    package: Annotated[
        str, typer.Option("--package", help="The name of the npm package.")
    ] = "discreet-recommendations",
    force: ForceFolder = False,
    as_json: AsJson = False,
) -> None:
    """Write a folder that recommends on the device: a page, an npm package, the label. Costs no budget.

    Histories stay on the device. bundle.json states how far quantized recommendations agree with `recommend`,
    measured on histories drawn from released numbers.
    """
    from discreet.export.bundle.folder import write_bundle
    from discreet.models.storage import load

    fitted = load(file)
    made = write_bundle(
        fitted,
        out,
        force=force,
        precisions=precision or ["int8", "float16"],
        title=title,
        package=package,
        onnx=onnx,
    )
    if as_json:
        emit({"folder": str(out), **made, "promise": fitted.guarantee.short()})
        return
    show(f"Written to {out}: {made['items']:,} items of {made['name']}, with their label.")
    show(fitted.guarantee.short(), *(_line(name, about) for name, about in made["models"].items()))
    show(f"Serve it: `python -m http.server --directory {out}` and open http://localhost:8000/.")


def _line(name: str, about: dict[str, Any]) -> str:
    return (
        f"{name}: {about['bytes'] / 1e3:,.0f} kB. On {about['lists']} histories drawn from the release "
        f"{about['shared_at_10']:.2%} of the first 10 items and {about['equal_lists']:.1%} of lists are "
        "the same as from `recommend`."
    )
