"""`discreet serve`: collect for a campaign, or answer for a model, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.checks import FileError, ParameterError, integer, positive_finite
from discreet.commands.output.printing import remark


def serve(
    target: Annotated[Path, typer.Argument(help="A campaign to collect for, or a model to answer for.")],
    store: Annotated[
        str, typer.Option("--store", envvar="DISCREET_STORE", help="sqlite:///FILE or postgresql://...")
    ] = "sqlite:///reports.db",
    publish: Annotated[
        Path | None, typer.Option("--publish", help="A model file to serve, and to write when refitting.")
    ] = None,
    refit: Annotated[
        float | None, typer.Option("--refit", help="Fit again every so many seconds; needs --publish.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="Which model a refit makes.")] = "local-channel",
    host: Annotated[str, typer.Option("--host", help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Where to listen.")] = 8080,
    per_minute: Annotated[
        int, typer.Option("--per-minute", help="Messages one peer may send a minute; 0 for no limit.")
    ] = 600,
) -> None:
    """Serve a campaign with its page for browsers, or a model with /recommend. Ctrl-C ends it."""
    from discreet.models.storage import is_model
    from discreet.service.running import need_service

    integer("--port", port, least=1, most=65535)
    integer("--per-minute", per_minute, least=0)
    need_service()
    if not target.is_file():
        raise FileError(f"{target} is not a file. Give a campaign or a model.")
    if is_model(target):
        _answer(target, host, port, per_minute)
    else:
        _collect(target, store, publish, refit, model, host, port, per_minute)


def _answer(model: Path, host: str, port: int, per_minute: int) -> None:
    from discreet.models.storage import load
    from discreet.service.answering import answering_app
    from discreet.service.running import run

    load(model)
    remark(f"Answering for {model} at http://{host}:{port}/docs")
    run(answering_app(model, per_minute=per_minute), host, port)


def _collect(
    target: Path,
    store: str,
    publish: Path | None,
    refit: float | None,
    model: str,
    host: str,
    port: int,
    per_minute: int,
) -> None:
    from discreet.collect.opening import open_campaign
    from discreet.service.collecting import collecting_app
    from discreet.service.pages import integrity_of, web_files
    from discreet.service.refitting import Refits
    from discreet.service.running import run
    from discreet.service.stores.opening import open_store

    if refit is not None and publish is None:
        raise ParameterError("--refit needs --publish: where the model is written.")
    kept = open_store(store, open_campaign(target))
    remark(f"Collecting for {kept.campaign.name!r} ({kept.campaign.digest.hex()}) at http://{host}:{port}/")
    for path, digest in integrity_of(web_files()).items():
        remark(f"  {path} {digest}")
    refits = None
    if refit is not None and publish is not None:
        refits = Refits(store, model, publish, positive_finite("--refit", refit))
        refits.start()
    try:
        run(collecting_app(kept, publish=publish, per_minute=per_minute), host, port)
    finally:
        if refits is not None:
            refits.stop()
        kept.dispose()
