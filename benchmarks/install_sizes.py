"""What each extra adds to an installation: megabytes and seconds, in a fresh environment for each.

    python benchmarks/install_sizes.py --json
    python benchmarks/install_sizes.py --extras service,postgresql

Every environment is made anew. `none` is this folder without an extra, beyond an empty environment; an extra
is what it adds to that. Seconds are those of pip by the clock, with whatever its cache holds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import harness

ROOT = Path(__file__).resolve().parents[1]
# For those who work on this repository, not for users.
NOT_FOR_USERS = ("test", "lint", "docs")


def extras() -> list[str]:
    """Return the names of all extras for users, and `none`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    return ["none", *(name for name in project["optional-dependencies"] if name not in NOT_FOR_USERS)]


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def installed(extra: str, *, toy: bool) -> dict[str, float]:
    """Return what a plain installation takes, or what an extra adds to one."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "environment"
        if toy:
            folder.mkdir()
            return {"megabytes": megabytes(folder), "seconds": 0.0}
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        if extra != "none":
            _install(folder, str(ROOT))
        before, begun = megabytes(folder), time.monotonic()
        _install(folder, str(ROOT) if extra == "none" else f"{ROOT}[{extra}]")
        seconds = time.monotonic() - begun
        return {"megabytes": round(megabytes(folder) - before, 1), "seconds": round(seconds, 1)}


def _install(folder: Path, what: str) -> None:
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", what], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"extras": ["none"]},
        extras=harness.option(type=lambda text: text.split(","), default=extras()),
    )
    results = {}
    for extra in options.extras:
        results[extra] = installed(extra, toy=options.toy)
        harness.say(extra, results[extra])
    harness.tell(results, options)


if __name__ == "__main__":
    main()
