"""Forget compiled kernels that were made from older sources than the present ones.

Numba compiles a kernel anew when its own file changes, but not when a kernel or a constant changes that it
takes from another file: then tests would run on code that no longer exists.
"""

import ast
import hashlib
import re
import shutil

_COMPILED = re.compile(r"^@(compiled|strict|inner|strict_inner|njit)\b", re.MULTILINE)


def forget_stale(root):
    """Delete the caches of a package's kernels that are older than what they import; return their names."""
    sources = {_name(path, root): path for path in root.rglob("*.py")}
    compiled = {name for name, path in sources.items() if _COMPILED.search(path.read_text(encoding="utf8"))}
    forgotten = set()
    for name in compiled:
        newest = max(sources[one].stat().st_mtime_ns for one in _needed(name, sources, compiled))
        for index in (sources[name].parent / "__pycache__").glob(f"{sources[name].stem}.*.nbi"):
            parts = index.parent.glob(f"{index.stem}.*.nbc")
            if any(part.stat().st_mtime_ns < newest for part in parts):
                index.unlink(missing_ok=True)
                forgotten.add(name)
    return sorted(forgotten)


def kept_while_unchanged(folder, root):
    """Return a folder for a package's kernels compiled in another way; any change of a kernel empties it."""
    sources = {_name(path, root): path for path in root.rglob("*.py")}
    compiled = {name for name, path in sources.items() if _COMPILED.search(path.read_text(encoding="utf8"))}
    needed = sorted({one for name in compiled for one in _needed(name, sources, compiled)})
    own = folder / hashlib.sha256(b"\0".join(sources[name].read_bytes() for name in needed)).hexdigest()[:16]
    for other in set(folder.iterdir()) - {own}:
        shutil.rmtree(other, ignore_errors=True)
    own.mkdir(exist_ok=True)
    return own


def _name(path, root):
    return ".".join([root.name, *path.relative_to(root).with_suffix("").parts])


def _needed(name, sources, compiled):
    """Return a module and those whose names are compiled into it: kernels of kernels, and their constants."""
    found, left = set(), [name]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += _imported(sources[one], sources) if one in compiled else []
    return found


def _imported(path, sources):
    for line in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(line, ast.ImportFrom) and line.module:
            names = [line.module, *(f"{line.module}.{one.name}" for one in line.names)]
            yield from (one for one in names if one in sources)
