"""Build the package and try it as a stranger would: the wheel, in an empty folder, on every Python found.

    python .ci/smoke.py [3.11 3.12 3.13]

Prints how long each takes to its first list. A Python that is not on this machine is named and left out; that
none of them is there is a failure.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
HISTORY = "item,rating\nReturn of the Satellite,5\nThe Cursed Doll and I,1\n"


def run(*command: object, cwd: Path) -> str:
    """Run a command in a folder and return what it printed; its errors end the program."""
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> Path:
    """Build sdist and wheel, look into both, and return the wheel."""
    run(sys.executable, "-m", "build", "--sdist", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    sdist, wheel = next(folder.glob("*.tar.gz")), next(folder.glob("*.whl"))
    with tarfile.open(sdist) as archive:
        inside = [name.partition("/")[2] for name in archive.getnames()]
    # Of the papers only what they print, which the wheel contains.
    printed = ("/claims.toml", "/printed.json")
    measured = [name for name in inside if name.startswith("papers/") and not name.endswith(printed)]
    tops = {name.partition("/")[0] for name in inside}
    assert not measured and not tops & {"tests", "benchmarks"}, (measured, tops)
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith("METADATA"))
        relative = re.findall(r"\]\((?!https?:|#)[^)]+\)", archive.read(metadata).decode())
        assert any(name.startswith("discreet/proofs/") for name in archive.namelist())
        assert any(name.endswith(".nbc") for name in archive.namelist()), "the wheel has no compiled kernels"
    assert not relative, f"The index would show links that lead nowhere: {relative}"
    return wheel


def python(version: str) -> str | None:
    """Return a Python of this version that starts, or None."""
    for command in (f"python{version}", sys.executable):
        found = shutil.which(command)
        asked = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"
        done = found and subprocess.run([found, "-c", asked], capture_output=True, text=True)
        if done and done.returncode == 0 and done.stdout.split()[0] == version:
            return done.stdout.split(maxsplit=1)[1].strip()
    return None


def first_list(interpreter: str, wheel: Path, folder: Path) -> float:
    """Install the wheel in a clean environment, fit in an empty folder, make a list; return the seconds."""
    started = time.monotonic()
    run(interpreter, "-m", "venv", folder / "environment", cwd=folder)
    own = folder / "environment" / "bin"
    run(own / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel, cwd=folder)
    run(own / "python", "-m", "pip", "check", cwd=folder)
    work = folder / "empty"
    work.mkdir()
    fit = ("fit", "discreet-demo", "--epsilon", "1", "--out", "mine.discreet")
    # An environment of its own for this command: a cache in which nothing is compiled yet.
    run("env", f"NUMBA_CACHE_DIR={folder / 'compiled'}", own / "discreet", *fit, cwd=work)
    # None, if the wheel's kernels are those of this Python and of the numba that was installed.
    print(f"The first fit compiled {len(list((folder / 'compiled').rglob('*.nbc')))} kernels.")
    (work / "me.csv").write_text(HISTORY)
    shown = run(own / "discreet", "recommend", "mine.discreet", "--history", "me.csv", "--json", cwd=work)
    assert len(json.loads(shown)["recommendations"]) == 10
    return time.monotonic() - started


def main() -> None:
    """Build once and try every Python."""
    tried = 0
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        for version in sys.argv[1:] or VERSIONS:
            interpreter = python(version)
            if interpreter is None:
                print(f"Python {version}: not on this machine")
                continue
            with tempfile.TemporaryDirectory() as clean:
                print(
                    f"Python {version}: first list after {first_list(interpreter, wheel, Path(clean)):.0f} s"
                )
            tried += 1
    if not tried:
        sys.exit("No Python to try the wheel on.")


if __name__ == "__main__":
    main()
