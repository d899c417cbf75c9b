"""`discreet serve`: serve a campaign or a model over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.output.printing import remark
from discreet.core.checks import FileError, ParameterError, integer, non_negative, positive_finite

if TYPE_CHECKING:
    from discreet.collect.blind_signatures import BlindSigningKey
    from discreet.service.refitting import Refits
    from discreet.service.stores.store import ReportStore


def serve(
    target: Annotated[Path, typer.Argument(help="A campaign file or a model file.")],
    store: Annotated[
        str,
        typer.Option(
            "--store",
            envvar="DISCREET_STORE",
            help="Where to store reports: sqlite:///FILE or postgresql://...",
        ),
    ] = "sqlite:///reports.db",
    publish: Annotated[
        Path | None, typer.Option("--publish", help="The model file to serve; a refit replaces it.")
    ] = None,
    refit: Annotated[
        float | None, typer.Option("--refit", help="Refit every so many seconds; needs --publish.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="The model to refit.")] = "local-channel",
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The port to listen on.")] = 8080,
    per_minute: Annotated[
        int, typer.Option("--per-minute", help="The most requests per client and minute; 0 for no limit.")
    ] = 600,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option("--trusted-proxy", help="A proxy whose X-Forwarded-For is believed; repeatable."),
    ] = None,
    batch_seconds: Annotated[
        float, typer.Option("--batch-seconds", help="How long reports wait to be written together.")
    ] = 0.5,
    most_senders: Annotated[
        int, typer.Option("--most-senders", help="How many devices may send; a refit holds all reports.")
    ] = 1 << 20,
    metrics_token: Annotated[
        str | None,
        typer.Option("--metrics-token", envvar="DISCREET_METRICS_TOKEN", help="Who shows it reads /metrics."),
    ] = None,
    invitation_key: Annotated[
        Path | None,
        typer.Option("--invitation-key", help="The key that `campaign new --invited` wrote."),
    ] = None,
    bundle: Annotated[
        bool, typer.Option("--bundle", help="Of a model: hand out at /bundle/ what recommends on the device.")
    ] = False,
) -> None:
    """Serve a campaign with its page for browsers, or a model with /recommend. Ctrl-C or SIGTERM ends it."""
    from discreet.models.storage import is_model
    from discreet.service.running import need_service

    integer("--port", port, least=1, most=65535)
    integer("--per-minute", per_minute, least=0)
    need_service()
    if not target.is_file():
        raise FileError(f"{target} is not a file. Give a campaign or a model.")
    proxies = tuple(trusted_proxy or ())
    if is_model(target):
        asked = {"per_minute": per_minute, "metrics_token": metrics_token, "proxies": proxies}
        _answer(target, host, port, {**asked, "bundle": bundle})
        return
    if bundle:
        raise ParameterError(
            "--bundle is for a model; the page of a campaign recommends on the device anyway."
        )
    non_negative("--batch-seconds", batch_seconds)
    integer("--most-senders", most_senders, least=1)
    if refit is not None and publish is None:
        raise ParameterError("--refit needs --publish: where the model is written.")
    settings = {"per_minute": per_minute, "batch_seconds": batch_seconds, "metrics_token": metrics_token}
    signer = _signer(invitation_key)
    kept = _opened(target, store, most_senders, signer, f"http://{host}:{port}/")
    refits = _refits(store, model, publish, refit)
    try:
        _collect(kept, host, port, {**settings, "signer": signer, "publish": publish, "proxies": proxies})
    finally:
        if refits is not None:
            refits.stop()
        kept.dispose()


def _signer(path: Path | None) -> BlindSigningKey | None:
    from discreet.collect.blind_signatures import BlindSigningKey

    if path is None:
        return None
    try:
        return BlindSigningKey.from_pem(path.read_bytes())
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error


def _answer(model: Path, host: str, port: int, settings: dict[str, Any]) -> None:
    from discreet.models.bundle.parts import parts_of
    from discreet.models.storage import load
    from discreet.service.answering import answering_app
    from discreet.service.running import run

    fitted = load(model)
    remark(f"Answering for {model} at http://{host}:{port}/docs")
    if settings["bundle"]:
        # What cannot be bundled is refused now, not when the first browser asks.
        parts_of(fitted)
        remark(f"Recommending on the device at http://{host}:{port}/bundle/")
    run(answering_app(model, **settings), host, port, settings["proxies"])


def _opened(
    target: Path, store: str, most_senders: int, signer: BlindSigningKey | None, url: str
) -> ReportStore:
    from discreet.collect.campaign import NotACampaignError
    from discreet.collect.opening import open_campaign
    from discreet.service.inviting import check_signer
    from discreet.service.pages import integrity_of, web_files
    from discreet.service.stores.opening import open_store

    try:
        campaign = open_campaign(target)
    except NotACampaignError:
        raise FileError(
            f"{target} is neither a campaign (`discreet campaign new`) nor a model (`discreet fit`). Give "
            "one of them."
        ) from None
    kept = open_store(store, campaign)
    kept.most_senders = most_senders
    try:
        check_signer(kept, signer)
    except ParameterError:
        kept.dispose()
        raise
    remark(f"Collecting for {kept.campaign.name!r} ({kept.campaign.digest.hex()}) at {url}")
    if kept.is_closed:
        remark("This collection is closed: the page says so, and nothing more is taken.")
    for path, digest in integrity_of(web_files()).items():
        remark(f"  {path} {digest}")
    return kept


def _refits(store: str, model: str, publish: Path | None, seconds: float | None) -> Refits | None:
    from discreet.service.refitting import Refits

    if seconds is None or publish is None:
        return None
    refits = Refits(store, model, publish, positive_finite("--refit", seconds))
    refits.start()
    return refits


def _collect(kept: ReportStore, host: str, port: int, settings: dict[str, Any]) -> None:
    from discreet.service.collecting import collecting_app
    from discreet.service.running import run

    run(collecting_app(kept, **settings), host, port, settings["proxies"])
