"""Run an application on a port until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.checks import ParameterError

if TYPE_CHECKING:
    import uvicorn
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
    """Serve until interrupted."""
    import uvicorn

    uvicorn.Server(configured(app, host, port)).run()


def configured(app: FastAPI, host: str, port: int) -> uvicorn.Config:
    """Return how applications are served: no request is logged, connections are bounded."""
    import uvicorn

    return uvicorn.Config(
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
