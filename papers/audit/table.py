"""Make from a kept run (`discreet audit --all --full --out results/models.json`) what is told of it.

`python papers/audit/table.py` prints the table of docs/audit.md, and writes the file that labels show and the
present fingerprints of all models, with which labels compare it; with `--toy` it writes nothing.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from discreet.audit import last_results

RUN = Path(__file__).parent / "results" / "models.json"
EPSILONS = last_results.EPSILONS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toy", action="store_true", help="write nothing")
    options = parser.parse_args()
    run = json.loads(RUN.read_text(encoding="utf8"))
    shipped = Path(last_results.__file__).with_name("last_audits.json")
    content = last_results.summarized(run["found"], run["version"])
    if not options.toy:
        shipped.write_text(json.dumps(content, indent=1) + "\n", encoding="utf8")
        present = json.dumps(last_results.present_fingerprints(), indent=1) + "\n"
        shipped.with_name("fingerprints.json").write_text(present, encoding="utf8")
    print(table(run["found"]))


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
