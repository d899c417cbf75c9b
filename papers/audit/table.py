"""Make from a kept run (`discreet model audit --all --full --out results/models.json`) what is told of it.

`python papers/audit/table.py` prints the table of docs/accuracy.md, and writes the file that labels show and
the present fingerprints of all models, with which labels compare it; with `--toy` it writes nothing.
`--add new.json` first takes over the audits in another run (`discreet model audit NAME --full
--out new.json`).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from discreet import model_settings
from discreet.audit import last_audits
from discreet.audit.fingerprint import fingerprint
from discreet.audit.presets import presets
from discreet.models.estimator import stored_setting

RUN = Path(__file__).parent / "results" / "models.json"
EPSILONS = last_audits.EPSILONS
# The bounds shown are those at the most common guarantee.
_SHOWN = 1.0
# The attacks that see every mechanism call of a fit; all others see what is computed from them.
_SEE_ALL = ("white box", "transcript")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toy", action="store_true", help="write nothing")
    parser.add_argument(
        "--add",
        type=Path,
        metavar="RUN",
        action="append",
        default=[],
        help="take over the audits of other runs",
    )
    options = parser.parse_args()
    run = json.loads(RUN.read_text(encoding="utf8"))
    if options.add:
        runs = [json.loads(path.read_text(encoding="utf8")) for path in options.add]
        new = [{**row, "version": other["version"]} for other in runs for row in other["found"]]
        run["found"] = merged(run["found"], new)
        if not options.toy:
            RUN.write_text(json.dumps(run, indent=1) + "\n", encoding="utf8")
    shipped = Path(last_audits.__file__).with_name("last_audits.json")
    content = summarized(run["found"], run["version"])
    if not options.toy:
        shipped.write_text(json.dumps(content, indent=1) + "\n", encoding="utf8")
        present = json.dumps(fingerprints(), indent=1) + "\n"
        shipped.with_name("fingerprints.json").write_text(present, encoding="utf8")
        settings = json.dumps(all_settings(), indent=1) + "\n"
        shipped.with_name("audited_settings.json").write_text(settings, encoding="utf8")
    print(table(run["found"]))


def subjects(level):
    """Return all that full runs audit at an epsilon: private models, and presets of some, by name."""
    private = [
        (name, {}) for name in sorted(model_settings.MODELS) if not model_settings.is_never_private(name)
    ]
    made = [model_settings.estimator(name, {**own, "epsilon": level}) for name, own in [*private, *presets()]]
    return {estimator.named: estimator for estimator in made}


def fingerprints():
    """Return the present fingerprints of all that full runs audit, by subject and epsilon."""
    found = {}
    for level in EPSILONS:
        for name, estimator in subjects(level).items():
            found.setdefault(name, {})[f"{level:g}"] = fingerprint(estimator)
    return found


def all_settings():
    """Return the settings of all that full runs audit, as a file holds them, without epsilon and delta."""
    found = {}
    for name, estimator in sorted(subjects(1.0).items()):
        stored = {key: stored_setting(value) for key, value in estimator.settings.items()}
        found[name] = {key: value for key, value in stored.items() if key not in ("epsilon", "delta")}
    return found


def merged(rows, new):
    """Return the kept rows, with those of a new run in place of the same attacks, or added."""

    def attack(row):
        return row["subject"], row["asked"], row["by"]

    audited = {attack(row) for row in new}
    return [*(row for row in rows if attack(row) not in audited), *new]


def summarized(rows, version):
    """Return the last audit of each subject in a kept run: a model's name, and settings if it is a preset."""
    by_model = {}
    for row in rows:
        by_model.setdefault(row["subject"], []).append(row)
    return {
        model: {key: value for key, value in _summary(found, version).to_json().items() if key != "present"}
        for model, found in sorted(by_model.items())
        if any(row["asked"] == _SHOWN for row in found)
    }


def _summary(rows, version):
    own = audited(rows)
    present = own.get(f"{_SHOWN:g}")
    output = [
        row for row in rows if row["asked"] == _SHOWN and present in (None, row.get("fingerprint", present))
    ]
    games = [row for row in output if row["by"] in ("transcript", "file")]
    (inside,) = (row for row in output if row["attack"] == "white box")
    return last_audits.LastAudit(
        subject=rows[0]["subject"],
        date=max(row["date"] for row in rows),
        # Rows that were added later have the version of their own run.
        version=max(row.get("version", version) for row in rows),
        verdict="refuted" if any(row["verdict"] == "refuted" for row in rows) else "not refuted",
        tried=tuple(sorted({row["asked"] for row in rows})),
        promised=_SHOWN,
        exact=inside["refuted"],
        refuted=max((row["refuted"] or 0.0 for row in games), default=0.0),
        curve=max((row["curve"] or 0.0 for row in games), default=0.0),
        confidence=min((row["confidence"] for row in games), default=1.0),
        fingerprints=own,
        present=False,
    )


def audited(rows):
    """Return the fingerprint at each epsilon; none at all if a row has none or two rows differ.

    Only attacks that see all mechanism calls count. Others see less, and an older one is kept as a record.
    """
    found = {}
    for row in rows:
        if row["by"] not in _SEE_ALL:
            continue
        found.setdefault(f"{row['asked']:g}", set()).add(row.get("fingerprint", ""))
    known = all(len(names) == 1 and "" not in names for names in found.values())
    return {level: names.pop() for level, names in sorted(found.items())} if known else {}


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
