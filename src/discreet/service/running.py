"""Run an application on a port until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.checks import ParameterError

if TYPE_CHECKING:
    from fastapi import FastAPI


def need_service() -> None:
    """Say which extra is missing, if it is."""
    try:
        import fastapi
        import uvicorn
    except ImportError as error:
        raise ParameterError("Serving needs an extra: pip install 'discreet[service]'.") from error
    del fastapi, uvicorn


def run(app: FastAPI, host: str, port: int) -> None:
    """Serve until interrupted. No request is logged; connections and their patience are bounded."""
    import uvicorn

    uvicorn.run(
        app,
        host=host,
        port=port,
        access_log=False,
        log_level="critical",
        server_header=False,
        date_header=False,
        limit_concurrency=2048,
        timeout_keep_alive=15,
    )
