"""Write docs/results.md from benchmarks/results.

Every file there is made by `benchmarks/keep.py` (accuracy.json and synthesis.json by their own scripts) and
states how it was measured. No number on the page is typed in.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from make_choosing import NAMES
from making import Making

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "results.md"
RESULTS = ROOT / "benchmarks" / "results"
HOW = ("command", "date", "version", "machine")
# Written by scripts that do not record yet how they measured.
WITHOUT_HOW = ("follow",)
INTRODUCTION = """# Results

This page is made by `python docs/build.py results` from `benchmarks/results`. Each table names the command
that measured it, the date, the version and the kind of machine. The machine was shared, so compare processor
seconds, not the clock. `python benchmarks/keep.py SCRIPT` measures again and keeps the result.
"""
NOT_KEPT = """## Measured before results were kept

These tables and numbers of other pages have no file in `benchmarks/results`. They were measured with earlier
versions, on the same kind of shared machine, and cannot be checked against a file. The command that measures
each is there.
"""
# Pages, what stands there, and why it was not measured again.
EARLIER = (
    (
        "[accuracy](accuracy.md#compared-with-another-auditor)",
        "the other auditor's columns",
        "needs jax-privacy",
    ),
    ("[accuracy](accuracy.md#scale)", "100 million ratings of an earlier version", "takes hours"),
    (
        "[accuracy](accuracy.md#federations)",
        "other epsilons, and over Flower",
        "takes hours, and needs Flower",
    ),
    ("[accuracy](accuracy.md#who-loses-accuracy)", "groups of users, similar items", "takes minutes"),
    (
        "[accuracy](accuracy.md#local-collection)",
        "local, one-bit, low-rank methods",
        "`discreet papers reproduce` does",
    ),
    (
        "[accuracy](accuracy.md#audits)",
        "audits of all models",
        "takes hours; `papers/audit/results` has the run",
    ),
    ("[collecting](collecting.md)", "the service under load", "takes minutes on a free machine"),
)


def kept(name: str) -> dict[str, Any]:
    """Return a kept result with how it was measured."""
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf8"))
    return content


def page() -> str:
    """Return the page of results."""
    parts = [INTRODUCTION]
    for name, (title, about, table) in SECTIONS.items():
        content = kept(name)
        parts.append(f"## {title}\n\n{about}\n\n{table(content['result'])}\n\n{provenance(content)}\n")
    parts.append(synthesis(kept("synthesis")))
    parts.append(floor(kept("floor")))
    parts.append("## Missed goals of accuracy\n\n" + shortfalls(kept("accuracy")) + "\n")
    parts.append(NOT_KEPT)
    parts.append(markdown(("page", "what", "why it was not measured again"), EARLIER) + "\n")
    return "\n".join(parts)


def provenance(content: dict[str, Any]) -> str:
    """Return one line that states how a result was measured."""
    machine = content["machine"]
    return (
        f"`{content['command']}`: {content['date']}, version {content['version']} ({content['commit']}), "
        f"{machine['processors']} processors ({machine['system']} {machine['processor']}), load "
        f"{content['load_before']:g} at its start, {content['processor_seconds']:,} processor seconds in all."
    )


def synthesis(content: dict[str, Any]) -> str:
    """Return the section about recommenders that learn from synthetic users."""
    rows = []
    for name, metrics in content["runs"].items():
        for metric, entries in metrics.items():
            for who, cells in entries.items():
                rows += [(name, metric, who, epsilon, *_spread(runs)) for epsilon, runs in cells.items()]
    table = markdown(("data", "metric", "model", "epsilon", "mean ± spread", "draws"), rows)
    about = (
        "A learner sees synthetic users only, and is tested on real ones with their real histories. `own` is "
        "the private model that they are drawn from, `popularity` the private baseline; delta is "
        f"{content['delta']:g}."
    )
    measured = f"`{content['command']}`: {content['date']}, version {content['version']}."
    return f"## Recommenders that learn from synthetic users\n\n{about}\n\n{table}\n\n{measured}\n"


def floor(content: dict[str, Any]) -> str:
    """Return the section about lists next to those of private popularity."""
    described, least = _from_benchmarks("floor", "described", "LEAST")
    rows = []
    for name, splits in content["runs"].items():
        for split, levels in splits.items():
            for purpose in ("lists", "both"):
                cells = {
                    epsilon: described(models, purpose)
                    for epsilon, models in sorted(levels.items(), key=lambda one: float(one[0]))
                    if purpose in models
                }
                texts = [
                    f"{epsilon}: {ratio:.2f} ± {error:.2f}" for epsilon, (_, ratio, error) in cells.items()
                ]
                seeds = max((len(models["popularity"]) for models in levels.values()), default=0)
                if texts:
                    rows.append((name, split, purpose, ", ".join(texts), seeds))
    table = markdown(("data", "split", "purpose", "epsilon: ratio ± standard error", "seeds"), rows)
    about = (
        "HR@10 of `user-factorization` divided by that of `popularity` at the same epsilon. The goal is "
        f"{least:g} or more. `200x100` is generated: 200 users and 100 items. Delta is {content['delta']:g}."
    )
    measured = f"`{content['command']}`: {content['date']}, version {content['version']}."
    return f"## Recommendations next to private popularity\n\n{about}\n\n{table}\n\n{measured}\n"


def _from_benchmarks(module: str, *names: str) -> list[Any]:
    """Return what a benchmark defines."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return [getattr(import_module(module), name) for name in names]
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def _field(result: dict[str, Any]) -> str:
    rows = []
    for name, models in result["data"].items():
        for model, levels in models.items():
            for epsilon, cell in levels.items():
                both = [f"{cell[m]['mean']:.4f} ± {cell[m]['deviation']:.4f}" for m in ("ndcg@10", "hr@10")]
                part = cell["ndcg@10"]["mean"] / result["published"][name]["SASRec"][0]
                seconds = f"{cell['fit seconds']:g} / {cell['list seconds']:g}"
                rows.append(
                    (name, f"`{model}`", epsilon, *both, f"{part:.2f}", cell["hr@10"]["runs"], seconds)
                )
        for model, (ndcg, hr) in result["published"][name].items():
            part = ndcg / result["published"][name]["SASRec"][0]
            rows.append(
                (name, f"{model}, published", "none", f"{ndcg:.4f}", f"{hr:.4f}", f"{part:.2f}", "", "")
            )
    head = ("data", "model", "epsilon", "NDCG@10", "HR@10", "of SASRec", "draws", "CPU s of fit / lists")
    return markdown(head, rows) + "\n\n![NDCG@10 by epsilon](images/field.svg)"


def _spread(runs: list[float]) -> tuple[str, int]:
    mean = f"{statistics.mean(runs):.4f}"
    return (mean if len(runs) < 2 else f"{mean} ± {statistics.stdev(runs):.4f}"), len(runs)


def shortfalls(results: dict[str, Any]) -> str:
    """Return for each goal of accuracy which measured numbers miss it, as `accuracy.py --check` does."""
    checks, failures = _from_benchmarks("accuracy_checks", "CHECKS", "failures")
    found = failures(results)
    rows = []
    for check in checks:
        missed: dict[str, list[str]] = {}
        for name, entry, _ in found[check.__name__]:
            missed.setdefault(NAMES[name], []).append(entry)
        where = "; ".join(f"{name}: {', '.join(dict.fromkeys(entries))}" for name, entries in missed.items())
        rows.append((str(check.__doc__).rstrip("."), len(found[check.__name__]), where))
    return markdown(("goal", "missed", "where (epsilon and metric)"), rows)


def markdown(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    titles = list(head)
    lines = ["| " + " | ".join(titles) + " |", "|---" * len(titles) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def _scale(result: dict[str, Any]) -> str:
    rows = [
        (
            f"{one['ratings']:,}",
            f"{one['people']:,}",
            f"{one['items']:,}",
            f"{one['fit_cpu_seconds']:.1f}",
            f"{one['cpu_per_million']:.2f}",
            f"{one['peak_mb']:,.0f} MB",
        )
        for one in result["sizes"]
    ]
    return markdown(("ratings", "users", "items", "fit", "read and fit, a million", "peak memory"), rows)


def _scale_times(result: dict[str, Any]) -> str:
    rows = [
        (
            f"{one['ratings']:,}",
            version,
            f"{one['fit_cpu_seconds']:.1f}",
            f"{one['fit_cpu_per_million']:.2f}",
            f"{one['cpu_per_million']:.2f}",
            f"{one['peak_mb']:,.0f} MB",
        )
        for version, sizes in (("0.1", result.get("beside", [])), ("this", result["sizes"]))
        for one in sizes
    ]
    head = ("ratings", "version", "fit", "fit, a million", "read and fit, a million", "peak memory")
    return markdown(head, rows)


def _lists(result: dict[str, Any]) -> str:
    orders = {
        "interactions": "bias and product",
        "paired": "the same, and weights between items",
        "ratings": "bias and product, and the chance of liking",
        "paired ratings": "all of these",
        "stars": "counts and expected ratings",
        "popularity": "counts",
        "peer": "bias and product, by `implicit.cpu.topk`",
    }
    rows = [
        (order, f"{result[name]:.2f}", f"{result[name] / result['peer']:.2f}")
        for name, order in orders.items()
    ]
    return markdown(("lists ordered by", "nanoseconds a score", "of the peer"), rows)


def _engines(result: dict[str, Any]) -> str:
    rows = [
        (
            f"{one['millions']:g}",
            one["purpose"],
            one["engine"],
            f"{one['cpu_per_million']:.2f}",
            f"{one['grouping_cpu_seconds'] / one['millions']:.2f}" if "grouping_cpu_seconds" in one else "",
            one["passes"] or "",
            f"{one['peak_mb']:,.0f} MB",
            {True: "yes", False: "no", None: "one engine"}[one["equal"]],
        )
        for one in result["rows"]
    ]
    head = ("millions", "for", "engine", "CPU s a million", "grouping", "passes", "peak memory", "same model")
    return markdown(head, rows)


def _federated(result: dict[str, Any]) -> str:
    rows = [
        (
            epsilon,
            model,
            name.replace("_", " "),
            f"{one['hr@10']:.3f} ± {one['std']:.3f} ({len(one['runs'])})",
            f"{one['below_central']:+.3f}",
        )
        for epsilon, models in result["epsilons"].items()
        for model, runs in models.items()
        for name, one in runs.items()
    ]
    return markdown(("epsilon", "model", "run", "HR@10 ± spread (seeds)", "below central"), rows)


def _retraining(result: dict[str, Any]) -> str:
    rows = [
        (name, f"{sum(runs) / len(runs):.3f}", f"{min(runs):.3f} to {max(runs):.3f}", len(runs))
        for name, runs in result["rmse"].items()
    ]
    return markdown(("model", "RMSE", "range", "seeds"), rows)


def _attacks(result: dict[str, Any]) -> str:
    def at(row: dict[str, Any], kind: str) -> str:
        return "-" if row[kind] is None else f"{row[kind]['0.01']:.3f}"

    rows = [
        (
            one["model"],
            one["attacked"],
            f"{one['games']:,}",
            f"{one['area']:.3f} ± {one['area_deviation']:.3f}",
            f"{at(one, 'power')} ± {at(one, 'power_deviation')}",
            at(one, "bound"),
            at(one, "bound_of_noise"),
            f"{one['refuted']:.2f}",
        )
        for one in result["rows"]
    ]
    heads = (
        "model",
        "attacked",
        "games",
        "area",
        "detected",
        "bound",
        "bound of its noise",
        "refuted epsilon",
    )
    return markdown(heads, rows)


def _audit(result: dict[str, Any]) -> str:
    rows = [
        (
            one["mechanism"],
            f"{one['samples']:,}",
            f"{one['ours']:.2f}",
            f"{one['ours_curve']:.2f}",
            "-" if one["peer"] is None else f"{one['peer']:.2f}",
        )
        for one in result["rows"]
    ]
    return markdown(("mechanism", "games", "ours", "on the curve", "other auditor"), rows)


def _als(result: dict[str, Any]) -> str:
    rows = [
        (side, f"{result['seconds'][side]:.1f}", *(f"{result[m][side]:.3f}" for m in ("hr@10", "ndcg@10")))
        for side in result["seconds"]
    ]
    return markdown(("implementation", "seconds", "HR@10", "NDCG@10"), rows)


def _als_ratings(result: dict[str, Any]) -> str:
    rows = [
        (f"`{side}`", f"{seconds:.1f}", f"{result['peak_mb'][side]:,.0f} MB")
        for side, seconds in result["cpu_seconds"].items()
    ]
    return markdown(("fit", "processor seconds", "peak memory"), rows)


def _frank_wolfe(result: dict[str, Any]) -> str:
    rows = [
        (
            f"{one['ratings']:,}",
            f"{one['round_seconds']:.3f}",
            f"{one['bare_seconds']:.3f}",
            f"{one['ratio']:.2f}",
            f"{one['later_ratio']:.2f}",
        )
        for one in result["sizes"]
    ]
    return markdown(
        ("ratings", "first round", "eight bare products", "ratio", "ratio of a later round"), rows
    )


def _exports(result: dict[str, Any]) -> str:
    rows = [
        (name, one["people"], *(f"{one[share]:.2%}" for share in ("same", "ranks", "vectors_alone")))
        for name, one in result.items()
        if "same" in one
    ]
    head = ("users", "items in common", "same item at the same rank", "in common by vectors alone")
    return markdown(("data, epsilon, target", *head), rows)


def _bundle(result: dict[str, Any]) -> str:
    rows = [
        (
            name if precision == "int8" else "",
            f"{one['items']:,}" if precision == "int8" else "",
            f"{one['download'] / 1e6:.2f} MB" if precision == "int8" else "",
            precision,
            f"{one[precision]['bytes'] / 1e6:.2f} MB",
            f"{one[precision]['median_ms']:.1f}",
            f"{one[precision]['shared']:.2%}",
            f"{one[precision]['equal']:.1%}",
        )
        for name, one in result.items()
        for precision in ("int8", "float16", "float32")
    ]
    head = (
        "model",
        "items",
        "the page loads",
        "precision",
        "model",
        "ms a list",
        "items shared",
        "lists equal",
    )
    return markdown(head, rows)


SECTIONS: dict[str, tuple[str, str, Callable[[dict[str, Any]], str]]] = {
    "field": (
        "Beauty and Toys in the field's protocol",
        "Training ends before each user's last two items. The last item is ranked among the whole catalog. "
        "Epsilon is for a user's whole history, delta is 1e-5. A draw is scored on 3,000 users, drawn anew; "
        "without noise, one fit on all users. Published numbers have no privacy.",
        _field,
    ),
    "scale": (
        "A private fit from a file",
        "`user-factorization` at epsilon 5 on generated ratings, in processor seconds.",
        _scale,
    ),
    "scale_times": (
        "A private fit from a file with times",
        "The same with times, one thread; version 0.1 reads and fits the same file in the same run.",
        _scale_times,
    ),
    "lists": (
        "Recommendations for all users",
        "Lists of 20 for 10,000 users from 17,770 items: processor time by user and item, one thread, "
        "compared with `implicit.cpu.topk` in the same run. Our times include fold-in and the table.",
        _lists,
    ),
    "engines": (
        "One sum, any engine",
        "`user-factorization` at epsilon 1 from Parquet files in the order of time, all processes counted. "
        "Dask and Spark have two local workers. *Grouping* by user is part of the time.",
        _engines,
    ),
    "engines_large": (
        "Up to a billion ratings on one machine",
        "The same from shards: 480,000 users and 17,770 items at 100 million, 2 million and 100,000 at 10^9. "
        "Two runs, put together; that of 10^9 ended before its fit for ratings, on the state before this "
        "commit. Memory is that of processes: the system's cache held the shards. Order informs at 10^9 "
        "only, so 100 million need one pass more.",
        _engines,
    ),
    "federated": (
        "Parties that don't share data",
        "Ten parties of MovieLens 1M against one data owner; HR@10 among 99 sampled items, delta 1e-5.",
        _federated,
    ),
    "retraining": (
        "A year of monthly fits",
        "MovieLens 1M cut by time into twelve parts, (5, 1e-6) per year; RMSE on hidden ratings of the last.",
        _retraining,
    ),
    "audit": (
        "Bounds of audits",
        "The largest epsilon refuted of a true epsilon 1, at 99%. The other auditor is `CanaryScoreAuditor` "
        "of jax-privacy; a dash: it was not installed for this run.",
        _audit,
    ),
    "attacks": (
        "Attacks on published models",
        "Shadow models guess who was in the data (1,500 users of MovieLens 1M, 200 canaries, 1,000 items; 32 "
        "shadow models and 24 targets each). *Detected* is at 1% false alarms, *area* is under the curve, "
        "with standard errors. *Refuted* is at 99%, with any noise; delta is 1e-6.",
        _attacks,
    ),
    "als": (
        "Alternating least squares on clicks",
        "The same loss, factors and iterations as `implicit`, on MovieLens 1M; medians by "
        "the clock, on a busy machine.",
        _als,
    ),
    "als_ratings": (
        "Alternating least squares on ratings",
        "A million generated ratings, default settings; `implicit` learns from clicks.",
        _als_ratings,
    ),
    "bundle": (
        "Bundles in a browser",
        "`discreet model bundle` of `user-factorization` at epsilon 5, in Chromium: ten recommendations for "
        "users in the data, compared with `recommend`. Times are medians; the page loads int8.",
        _bundle,
    ),
    "frank_wolfe": (
        "A round of private Frank-Wolfe",
        "Processor seconds of a round of Oja's method, compared with the sparse products it needs.",
        _frank_wolfe,
    ),
    "exports": (
        "Exports",
        "Lists of ten from an exported index against `recommend`: `user-factorization` on "
        "interactions, one fit.",
        _exports,
    ),
}


def build(made: Making) -> None:
    """Write the files of this module."""
    made.write(PAGE, page())
