"""`discreet serve`: serve a campaign or a model over HTTP."""

from __future__ import annotations

from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import lib
from discreet.cli.errors import NotServable, OptionDoesNotApply, OptionNeeds
from discreet.cli.output.printing import remark
from discreet.core import FileUnreadable, NoSuchFile, integer, non_negative, positive_finite
from discreet.core.checks import ParameterError


def serve(
    target: Path,
    *,
    store: Annotated[str, typer.Option("--store", envvar="DISCREET_STORE")] = "sqlite:///reports.db",
    publish: Path | None = None,
    refit: float | None = None,
    model: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    workers: int = 1,
    per_minute: int = 600,
    trusted_proxy: list[str] | None = None,
    batch_seconds: float = 0.5,
    most_senders: int = 1 << 20,
    metrics_token: Annotated[
        str | None, typer.Option("--metrics-token", envvar="DISCREET_METRICS_TOKEN")
    ] = None,
    invitation_key: Path | None = None,
    bundle: bool = False,
) -> None:
    """Serve a campaign with its page for browsers, or a model with /recommend. Ctrl-C or SIGTERM ends it.

    Options:
        target: A campaign file or a model file.
        store: Where to store reports: sqlite:///FILE or postgresql://...
        publish: The model file to serve; a refit replaces it.
        refit: Seconds between refits; needs --publish.
        model: The model to refit. Default: the mechanism's usual model.
        host: The address to listen on.
        port: The port to listen on.
        workers: Number of processes that serve a model on one port.
        per_minute: Maximum requests per client and minute; 0 for no limit.
        trusted_proxy: A proxy whose X-Forwarded-For is trusted; repeatable.
        batch_seconds: Seconds between writes of reports to the store.
        most_senders: Maximum number of devices that may send. A refit loads all reports into memory.
        metrics_token: Bearer token required to read /metrics.
        invitation_key: The key that `campaign new --invited` wrote.
        bundle: For a model: also serve the on-device recommender at /bundle/.
    """
    integer("--port", port, least=1, most=65535)
    integer("--per-minute", per_minute, least=0)
    integer("--workers", workers, least=1, most=256)
    lib.need_service()
    if not target.is_file():
        raise NoSuchFile(path=target, kind="model or campaign file")
    proxies = tuple(trusted_proxy or ())
    if lib.is_model(target):
        asked = {"per_minute": per_minute, "metrics_token": metrics_token, "proxies": proxies}
        _answer(target, host, port, workers, {**asked, "bundle": bundle})
        return
    if workers > 1:
        raise OptionDoesNotApply(
            options=("--workers",), to="a campaign", why="several services share one PostgreSQL store instead"
        )
    if bundle:
        raise OptionDoesNotApply(
            options=("--bundle",), to="a campaign", why="its page already recommends on the device"
        )
    non_negative("--batch-seconds", batch_seconds)
    integer("--most-senders", most_senders, least=1)
    if refit is not None and publish is None:
        raise OptionNeeds(
            options=("--refit",), needs="--publish FILE", why="the model is written to that file"
        )
    signer = _signer(invitation_key)
    with ExitStack() as stack:
        kept = stack.enter_context(
            closing(_opened(target, store, most_senders, signer, f"http://{host}:{port}/"))
        )
        if refit is not None and publish is not None:
            refits = lib.Refits(store, model, publish, positive_finite("--refit", refit))
            refits.start()
            stack.callback(refits.stop)
        made = lib.collecting_app(
            kept,
            publish=publish,
            per_minute=per_minute,
            proxies=proxies,
            batch_seconds=batch_seconds,
            metrics_token=metrics_token,
            signer=signer,
        )
        lib.run_service(made, host, port, proxies)


def _signer(path: Path | None) -> lib.BlindSigningKey | None:
    if path is None:
        return None
    try:
        return lib.BlindSigningKey.from_pem(path.read_bytes())
    except OSError as error:
        raise FileUnreadable(path=path, reason=str(error.strerror)) from error


def _answer(model: Path, host: str, port: int, workers: int, settings: dict[str, Any]) -> None:
    fitted = lib.load(model)
    remark(f"Answering for {model} at http://{host}:{port}/docs")
    if settings["bundle"]:
        # A model that can't be bundled is rejected now, not when the first browser asks.
        lib.parts_of(fitted)
        remark(f"Recommending on the device at http://{host}:{port}/bundle/")
    if workers > 1:
        lib.run_several(
            partial(lib.answering_app, model, **settings), workers, host, port, settings["proxies"]
        )
        return
    lib.run_service(lib.answering_app(model, **settings), host, port, settings["proxies"])


def _opened(
    target: Path, store: str, most_senders: int, signer: lib.BlindSigningKey | None, url: str
) -> lib.ReportStore:
    try:
        campaign = lib.open_campaign(target)
    except lib.NotACampaignError:
        raise NotServable(path=target) from None
    kept = lib.open_store(store, campaign)
    kept.most_senders = most_senders
    try:
        lib.check_signer(kept, signer)
    except ParameterError:
        kept.close()
        raise
    remark(f"Collecting for {kept.campaign.name!r} ({kept.campaign.digest.hex()}) at {url}")
    if kept.is_closed:
        remark("This collection is closed. Its page shows this, and no more reports are accepted.")
    if isinstance(campaign, lib.GradientCampaign):
        remark(
            f"Round {kept.round} of {campaign.rounds:,} is open; `discreet campaign next-round` closes it."
        )
        return kept
    for path, digest in lib.integrity_of(lib.web_files()).items():
        remark(f"  {path} {digest}")
    return kept
