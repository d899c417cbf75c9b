"""Hand out the bundle of the newest model, so that browsers recommend by themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Annotated, final

from fastapi import FastAPI, Request, Response
from fastapi import Path as InPath
from fastapi.responses import RedirectResponse

from discreet.core.checks import DiscreetError
from discreet.export.bundle.folder import INDEX, MANIFEST, bundle_files, bundle_names
from discreet.models.fitted import FittedModel
from discreet.service.limits import RefusedError
from discreet.service.pages import POLICY, TYPES
from discreet.service.publishing import Published
from discreet.service.running import log
from discreet.service.workers import Workers

# The page of a bundle starts one worker, which keeps it for use without a connection.
_POLICY = POLICY.replace("trusted-types 'none'", "trusted-types discreet-worker") + "; worker-src 'self'"
_TYPES = {**TYPES, "json": "application/json", "md": "text/markdown; charset=utf-8"}
_LONGEST_PATH = 100


@final
class BundleShelf:
    """The bundle of the newest model, or why it has none; it is made once for each published model."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: tuple[FittedModel, dict[str, bytes] | RefusedError] | None = None

    def files(self, published: Published) -> dict[str, bytes]:
        """Return the files of the bundle by path; a model that cannot be bundled is a `RefusedError`."""
        with self._lock:
            if self._made is None or self._made[0] is not published.model:
                self._made = published.model, _made(published.model)
            found = self._made[1]
        if isinstance(found, RefusedError):
            raise RefusedError(found.status, found.sentence)
        return found


def _made(model: FittedModel) -> dict[str, bytes] | RefusedError:
    """Return the files, or the refusal: trying again would take as long and end alike."""
    try:
        return bundle_files(model)
    except DiscreetError as error:
        return RefusedError(422, str(error))
    except Exception as error:
        log("bundle failed", kind=type(error).__name__)
        return RefusedError(500, "The bundle of this model could not be made.")


def add_bundle(
    app: FastAPI,
    newest: Callable[[], Published],
    workers: Workers,
    limit: Callable[[Request], None],
) -> None:
    """Add /bundle/ to an application; `limit` rejects a peer that asks too often."""
    shelf, names = BundleShelf(), bundle_names()

    @app.get("/bundle", include_in_schema=False)
    async def folder() -> RedirectResponse:
        return RedirectResponse("/bundle/", 307)

    @app.get(
        "/bundle/{path:path}",
        summary="A file of the bundle that recommends on the device",
        response_class=Response,
        openapi_extra={"x-examples": {"path": MANIFEST}},
    )
    async def bundled(request: Request, path: Annotated[str, InPath(max_length=_LONGEST_PATH)]) -> Response:
        """The page is at /bundle/; it sends nothing."""
        limit(request)
        name = path or INDEX
        if name not in names:
            raise RefusedError(404, "Nothing is here. GET /docs lists what there is.")
        made = await workers.run(lambda: shelf.files(newest()))
        kind = _TYPES.get(name.rpartition(".")[2], "application/octet-stream")
        headers = {"content-security-policy": _POLICY, "cache-control": "no-cache"}
        return Response(made[name], media_type=kind, headers=headers)
