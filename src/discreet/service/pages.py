"""Serve the page and the device's modules from memory, with the hashes by which anybody can compare them."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import final

from discreet.export.bundle.folder import web_files as bundled_files

#: The types by which files for browsers are served, by the ending of their names.
TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_ENTRY = "page/page.js"

#: Nothing but what this service itself serves, and no code or style inside a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@final
@dataclass(frozen=True)
class WebFile:
    """A file as it is served."""

    content: bytes
    media_type: str

    @cached_property
    def integrity(self) -> str:
        """Return the hash by which a browser, or a user, compares it."""
        return "sha384-" + base64.b64encode(hashlib.sha384(self.content).digest()).decode()


def web_files() -> dict[str, WebFile]:
    """Return every file of the page by its path, `index.html` with the hashes of all scripts in it."""
    found: dict[str, WebFile] = {}
    given = {
        f"{folder}/{entry.name}": entry.read_bytes()
        for folder in ("device", "page")
        for entry in files("discreet.service").joinpath("web", folder).iterdir()
    }
    for path, content in (given | bundled_files("shared")).items():
        kind = TYPES.get(path.rpartition(".")[2])
        if kind is not None:
            found[path] = WebFile(content, kind)
    scripts = {path: file.integrity for path, file in sorted(found.items()) if path.endswith(".js")}
    page = found.pop("page/index.html")
    modules = [
        f'<link rel="modulepreload" href="/{path}" integrity="{digest}">' for path, digest in scripts.items()
    ]
    entry_point = f'<script type="module" src="/{_ENTRY}" integrity="{scripts[_ENTRY]}"></script>'
    text = page.content.decode().replace("<!-- modules -->", "\n    ".join([*modules, entry_point]))
    return {**found, "": WebFile(text.encode(), page.media_type)}


def integrity_of(served: dict[str, WebFile]) -> dict[str, str]:
    """Return the hash of everything a browser is given, by path."""
    return {f"/{path}": file.integrity for path, file in sorted(served.items())}
