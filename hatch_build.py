"""Make what a package index shows: the project's addresses, and the README without links that lead nowhere.

An index shows the README away from its folder, so links to files must be whole addresses. pyproject.toml has
the one place for the repository's address (`[tool.hatch.metadata.hooks.custom]`). As long as it is empty,
links to files become plain words and pictures of the repository are left out; every other link stays.
"""

from __future__ import annotations

import re
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


def get_metadata_hook() -> type:
    """Return what hatchling runs while it builds; the rest of this file needs no hatchling."""
    from pathlib import Path

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
