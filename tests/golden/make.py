"""Keep golden arrays: add those of new fits, or write anew what changed on purpose (say why in CHANGELOG.md).

Run `make golden` to add what is missing on any machine, or
`PYTHONPATH=tests .venv/bin/python -m golden.make --changed 'larger/biases*'` (or `--all`).
"""

import argparse
from fnmatch import fnmatchcase

import numpy as np

from golden.cases import arrays_of, recipes
from golden.records import changed, difference, machine, numbers_of, read, record, write


def updated(golden, arrays, here, anew=()):
    """Return golden records brought up to date with the arrays of every fit, and a line for each difference.

    Missing arrays are added and those under another name renamed; changed and lost ones stay as they are
    unless a pattern of `anew` allows to write them anew.
    """
    kept, lines = {}, []
    gone = {key: one for key, one in golden.items() if key not in arrays}
    for key, array in arrays.items():
        again = any(fnmatchcase(key, pattern) for pattern in anew)
        if key in golden and (again or not changed(golden, key, array, here)):
            same = not changed(golden, key, array, here)
            kept[key] = golden[key] if same else record(array, here)
            lines += [] if same else [f"changed  {key}: by {difference(golden[key], array):.1e} of its scale"]
        elif key in golden:
            kept[key] = golden[key]
            lines.append(f"kept     {changed(golden, key, array, here)} To accept it pass --changed '{key}'.")
        elif before := _former_name(gone, key, array, here):
            kept[key] = gone.pop(before)
            lines.append(f"renamed  {before} is now {key}")
        else:
            kept[key] = record(array, here)
            shown = np.array2string(numbers_of(array)[:4], precision=4) if array.dtype.kind == "f" else ""
            lines.append(f"added    {key}: {array.dtype} {array.shape} {shown}")
    for key, one in gone.items():
        if any(fnmatchcase(key, pattern) for pattern in anew):
            lines.append(f"dropped  {key}")
        else:
            kept[key] = one
            lines.append(f"kept     {key} is no longer made. To drop it pass --changed '{key}'.")
    return kept, lines


def _former_name(gone, key, array, here):
    """Return under which name the same data set had this array before, or nothing."""
    where, fit, own = key.split("/")
    names = [name for name in gone if name.startswith(f"{where}/")]
    names.sort(key=lambda name: (name.split("/")[1] != fit, name.split("/")[2] != own))
    return next((name for name in names if not changed(gone, name, array, here)), "")


def main():
    """Bring the golden file up to date."""
    options = argparse.ArgumentParser(prog="golden.make", description=__doc__.splitlines()[0])
    ways = options.add_mutually_exclusive_group(required=True)
    ways.add_argument("--missing", action="store_true", help="add arrays that have no record yet")
    ways.add_argument("--changed", nargs="+", metavar="NAME", help="write these anew; * matches anything")
    ways.add_argument("--all", action="store_true", help="write everything that changed anew")
    chosen = options.parse_args()
    anew = ["*"] if chosen.all else chosen.changed or []
    arrays = {key: array for fit in recipes() for key, array in arrays_of(fit).items()}
    kept, lines = updated(read(), arrays, machine(), anew)
    write(kept)
    print("\n".join([*lines, f"{len(kept)} golden arrays."]))


if __name__ == "__main__":
    main()
