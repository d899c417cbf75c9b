"""Make what a package index shows, and put compiled kernels into the wheel if `.ci/kernels.py` made them.

An index shows the README away from its folder, so links to files must be whole addresses. pyproject.toml has
the one place for the repository's address (`[tool.hatch.metadata.hooks.custom]`). As long as it is empty,
links to files become plain words and pictures of the repository are left out; every other link stays.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")
_PLACES = {"Documentation": "docs", "Changelog": "CHANGELOG.md", "Broken promises": "SECURITY.md"}


def for_index(readme: str, address: str, version: str) -> str:
    """Return the README with links to the files of this version, or with none if there is no address."""

    def absolute(match: re.Match[str]) -> str:
        image, words, target = match.groups()
        if not address:
            return "" if image else words
        return f"{image}[{words}]({file_address(address, version, target, raw=bool(image))})"

    return re.sub(r"\n{3,}", "\n\n", _LINK.sub(absolute, readme))


def file_address(address: str, version: str, path: str, *, raw: bool = False) -> str:
    """Return where a file of a tagged version is: the form that the usual hosts of repositories share."""
    return f"{address.rstrip('/')}/{'raw' if raw else 'blob'}/v{version}/{path}"


def urls(address: str, version: str) -> dict[str, str]:
    """Return the project's addresses; none as long as the repository has none."""
    if not address:
        return {}
    files = {name: file_address(address, version, path) for name, path in _PLACES.items()}
    return {"Homepage": address, "Issues": f"{address.rstrip('/')}/issues", **files}


def digest_of_sources(root: Path) -> str:
    """Return a digest of the package's modules. A loop can be compiled into loops of other modules."""
    total = hashlib.sha256()
    for file in sorted((root / "src" / "discreet").rglob("*.py")):
        total.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return total.hexdigest()


def compiled_kernels(root: Path) -> dict[str, str]:
    """Return which folder goes where in the wheel; none if no kernels were compiled from these sources."""
    made = root / "build" / "kernels"
    stated = made / "target.json"
    if not stated.exists() or json.loads(stated.read_text())["sources"] != digest_of_sources(root):
        return {}
    return {str(made): "discreet/core/compiled"}


def get_build_hook() -> type:
    """Return what hatchling runs before it builds a wheel."""
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class Kernels(BuildHookInterface):
        """Add compiled kernels. Without them, numba compiles each kernel at its first use."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            if version == "standard":
                build_data["force_include"].update(compiled_kernels(Path(self.root)))

    return Kernels


def get_metadata_hook() -> type:
    """Return what hatchling runs while it builds; the rest of this file needs no hatchling."""
    from hatchling.metadata.plugin.interface import MetadataHookInterface

    class IndexPage(MetadataHookInterface):
        """Fill in the fields that pyproject.toml calls dynamic."""

        def update(self, metadata: dict[str, Any]) -> None:
            address = self.config.get("address", "")
            text = (Path(self.root) / "README.md").read_text(encoding="utf8")
            metadata["readme"] = {
                "content-type": "text/markdown",
                "text": for_index(text, address, metadata["version"]),
            }
            metadata["urls"] = urls(address, metadata["version"])

    return IndexPage
