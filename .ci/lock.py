"""Write the hashes of every file that pip may choose for the versions in a lock, so that it takes no other.

    python .ci/lock.py INDEX requirements-service.lock [NAME==VERSION ...]

INDEX is the address of a package index. Versions are those of the lock, and those given. Kept are wheels for
Linux on usual processors, for the Python of the image and those that tests run on; and the source where there
is no wheel.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from urllib.parse import unquote
from urllib.request import urlopen

_PINNED = re.compile(r"^([a-z0-9-]+)==([0-9][\w.]*)", re.MULTILINE)
_LINK = re.compile(r'href="[^"#]*/([^"/#]+)#sha256=([0-9a-f]{64})"')
_WHEEL = re.compile(
    r"-(?:py3|py2\.py3|cp31[1-3]|cp3\d+-abi3)[\w.-]*-(?:any|manylinux[\w.]*_(?:x86_64|aarch64))\.whl$"
)


def hashes_of(index: str, name: str, version: str) -> list[str]:
    """Return the hashes of the files of one version."""
    with urlopen(f"{index.rstrip('/')}/{name}/", timeout=60) as answer:
        links = {unquote(file): digest for file, digest in _LINK.findall(answer.read().decode())}
    stem = re.compile(
        rf"{name.replace('-', '[-_.]')}-{re.escape(version)}(-.*\.whl|\.tar\.gz)$", re.IGNORECASE
    )
    own = {file: digest for file, digest in links.items() if stem.fullmatch(file)}
    wheels = [digest for file, digest in own.items() if _WHEEL.search(file)]
    found = wheels or [digest for file, digest in own.items() if file.endswith(".tar.gz")]
    if not found:
        sys.exit(f"The index has no file of {name} {version}.")
    return sorted(found)


def main() -> None:
    """Rewrite the lock."""
    index, path, *more = sys.argv[1:]
    old = Path(path).read_text(encoding="utf8")
    head = [line for line in old.splitlines() if line.startswith("#")]
    pinned = sorted(dict(_PINNED.findall("\n".join([old, *more]))).items())
    blocks = []
    for name, version in pinned:
        lines = [
            f"{name}=={version}",
            *(f"    --hash=sha256:{one}" for one in hashes_of(index, name, version)),
        ]
        blocks.append(" \\\n".join(lines))
    Path(path).write_text("\n".join([*head, *blocks]) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
