"""Make from a kept run (`discreet model audit --all --full --out results/models.json`) what is told of it.

`python papers/audit/table.py` prints the table of docs/accuracy.md, and writes the file that labels show and
the present fingerprints of all models, with which labels compare it; with `--toy` it writes nothing.
`--add new.json` first takes over the audits of the models in another run (`discreet model audit NAME --full
--out new.json`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from discreet import recipes
from discreet.audit import last_audits
from discreet.audit.fingerprint import fingerprint

RUN = Path(__file__).parent / "results" / "models.json"
EPSILONS = last_audits.EPSILONS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toy", action="store_true", help="write nothing")
    parser.add_argument("--add", type=Path, metavar="RUN", help="take over the audits of another run")
    options = parser.parse_args()
    run = json.loads(RUN.read_text(encoding="utf8"))
    if options.add is not None:
        run["found"] = merged(run["found"], json.loads(options.add.read_text(encoding="utf8"))["found"])
        if not options.toy:
            RUN.write_text(json.dumps(run, indent=1) + "\n", encoding="utf8")
    shipped = Path(last_audits.__file__).with_name("last_audits.json")
    content = last_audits.summarized(run["found"], run["version"])
    if not options.toy:
        shipped.write_text(json.dumps(content, indent=1) + "\n", encoding="utf8")
        present = json.dumps(fingerprints(), indent=1) + "\n"
        shipped.with_name("fingerprints.json").write_text(present, encoding="utf8")
        settings = json.dumps(settings_of(content), indent=1) + "\n"
        shipped.with_name("audited_settings.json").write_text(settings, encoding="utf8")
    print(table(run["found"]))


def fingerprints():
    """Return the present fingerprints of all models that promise something, by name and epsilon."""
    return {
        name: {f"{level:g}": fingerprint(recipes.estimator(name, {"epsilon": level})) for level in EPSILONS}
        for name in sorted(recipes.MODELS)
        if not recipes.is_never_private(name)
    }


def settings_of(models):
    """Return the default settings of models, as a file holds them; the promise's own numbers are left out."""
    return {
        name: {key: value for key, value in recipes.defaults(name).items() if key not in ("epsilon", "delta")}
        for name in sorted(models)
    }


def merged(rows, new):
    """Return the kept rows, with those of the models in a new run replaced or added."""
    audited = {row["subject"] for row in new}
    return [*(row for row in rows if row["subject"] not in audited), *new]


def table(rows):
    """Return a row for each model, a column for each view and epsilon."""
    found = {(row["subject"], row["asked"], row["attack"]): row for row in rows}
    columns = [("white box", epsilon) for epsilon in EPSILONS]
    columns += [(view, epsilon) for view in ("transcript", "file") for epsilon in EPSILONS]
    titles = {"white box": "exact"}
    lines = ["| model | " + " | ".join(f"{titles.get(a, a)} at {e:g}" for a, e in columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for model in sorted({row["subject"] for row in rows}):
        cells = [_cell(found.get((model, epsilon, attack))) for attack, epsilon in columns]
        lines.append(f"| `{model}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row):
    if row is None:
        return ""
    if row["attack"] == "white box":
        return "leaks" if row["refuted"] is None else f"{row['refuted'] / row['promised']:.3f}"
    return f"{row['refuted']:.2f} / " + ("-" if row["curve"] is None else f"{row['curve']:.2f}")


if __name__ == "__main__":
    main()
