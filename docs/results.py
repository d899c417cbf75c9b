"""Write docs/results.md from benchmarks/results.

Every file there is made by `benchmarks/keep.py` (accuracy.json and synthesis.json by their own scripts) and
states how it was measured. No number on the page is typed in.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from build import ROOT, Making
from pages import NAMES, kept, markdown

PAGE = ROOT / "docs" / "results.md"
HOW = ("command", "date", "version", "machine")
# Written by scripts that do not record yet how they measured.
WITHOUT_HOW = ("follow",)
INTRODUCTION = """# Results

`python docs/build.py results` writes this page from `benchmarks/results`.
Below each table are the command that measured it, the date, the version, and the kind of machine.
Other programs ran on this machine, so compare processor seconds, not clock times.
To measure again, run `python benchmarks/keep.py SCRIPT`.
"""
NOT_KEPT = """## Measured before results were kept

These tables and numbers of other pages have no file in `benchmarks/results`, so you can't check them.
We measured them with earlier versions, on the same kind of shared machine. Each page has the command.
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


def page() -> str:
    """Return the page of results."""
    parts = [INTRODUCTION]
    for name, section in SECTIONS.items():
        content = kept(name)
        shown = f"{section.about}\n\n{section.table(content['result'])}"
        parts.append(f"## {section.title}\n\n{shown}\n\n{provenance(content)}\n")
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
        "Each model learns only from synthetic users, and is tested on real users with their real histories. "
        "`own` is the private model that produced the synthetic users, and `popularity` is the private "
        "baseline. Delta is "
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
        "HR@10 of `user-factorization`, divided by the HR@10 of `popularity` at the same epsilon. Our goal "
        f"is {least:g} or more. `200x100` is generated: 200 users, 100 items. Delta is {content['delta']:g}."
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


# Rows of tables: dictionaries, whose fields the templates of a section show.

Rows = Iterable[Mapping[str, Any]]


class Section(NamedTuple):
    """A table of the page: its words, the rows of a kept result, and a template for each column."""

    title: str
    about: str
    rows: Callable[[dict[str, Any]], Rows]
    columns: Mapping[str, str]
    after: str = ""

    def table(self, result: dict[str, Any]) -> str:
        """Return the table of a result."""
        rows = ([one.format_map(row) for one in self.columns.values()] for row in self.rows(result))
        return markdown(self.columns, rows) + self.after


def _field(result: dict[str, Any]) -> Rows:
    for name, models in result["data"].items():
        published = result["published"][name]
        for model, levels in models.items():
            for epsilon, cell in levels.items():
                ndcg, hr = (
                    f"{cell[m]['mean']:.4f} ± {cell[m]['deviation']:.4f}" for m in ("ndcg@10", "hr@10")
                )
                part = cell["ndcg@10"]["mean"] / published["SASRec"][0]
                seconds = f"{cell['fit seconds']:g} / {cell['list seconds']:g}"
                row = {"data": name, "model": f"`{model}`", "epsilon": epsilon, "ndcg": ndcg, "hr": hr}
                yield row | {"part": part, "draws": cell["hr@10"]["runs"], "seconds": seconds}
        for model, (ndcg, hr) in published.items():
            row = {"data": name, "model": f"{model}, published", "epsilon": "none", "ndcg": f"{ndcg:.4f}"}
            part = ndcg / published["SASRec"][0]
            yield row | {"hr": f"{hr:.4f}", "part": part, "draws": "", "seconds": ""}


def _scale_times(result: dict[str, Any]) -> Rows:
    for version, sizes in (("0.1", result.get("beside", [])), ("this", result["sizes"])):
        yield from (one | {"version": version} for one in sizes)


def _lists(result: dict[str, Any]) -> Rows:
    orders = {
        "interactions": "bias and product",
        "paired": "the same, and weights between items",
        "ratings": "bias and product, and the chance of liking",
        "paired ratings": "all of these",
        "stars": "counts and expected ratings",
        "popularity": "counts",
        "peer": "bias and product, by `implicit.cpu.topk`",
    }
    for name, order in orders.items():
        yield {"order": order, "nanoseconds": result[name], "ratio": result[name] / result["peer"]}


def _engines(result: dict[str, Any]) -> Rows:
    for one in result["rows"]:
        grouping = (
            f"{one['grouping_cpu_seconds'] / one['millions']:.2f}" if "grouping_cpu_seconds" in one else ""
        )
        same = {True: "yes", False: "no", None: "one engine"}[one["equal"]]
        yield one | {"grouping": grouping, "passes": one["passes"] or "", "same": same}


def _federated(result: dict[str, Any]) -> Rows:
    for epsilon, models in result["epsilons"].items():
        for model, runs in models.items():
            for name, one in runs.items():
                row = {"epsilon": epsilon, "model": model, "run": name.replace("_", " ")}
                yield row | {"seeds": len(one["runs"]), "hr": one["hr@10"], **one}


def _retraining(result: dict[str, Any]) -> Rows:
    for name, runs in result["rmse"].items():
        row = {"model": name, "mean": sum(runs) / len(runs), "seeds": len(runs)}
        yield row | {"least": min(runs), "most": max(runs)}


def _attacks(result: dict[str, Any]) -> Rows:
    kinds = ("power", "power_deviation", "bound", "bound_of_noise")
    for one in result["rows"]:
        yield one | {kind: "-" if one[kind] is None else f"{one[kind]['0.01']:.3f}" for kind in kinds}


def _audit(result: dict[str, Any]) -> Rows:
    for one in result["rows"]:
        yield one | {"peer": "-" if one["peer"] is None else f"{one['peer']:.2f}"}


def _als(result: dict[str, Any]) -> Rows:
    for side, seconds in result["seconds"].items():
        yield {"side": side, "seconds": seconds, "hr": result["hr@10"][side], "ndcg": result["ndcg@10"][side]}


def _als_ratings(result: dict[str, Any]) -> Rows:
    for side, seconds in result["cpu_seconds"].items():
        yield {"side": side, "seconds": seconds, "peak_mb": result["peak_mb"][side]}


def _exports(result: dict[str, Any]) -> Rows:
    yield from ({"name": name, **one} for name, one in result.items() if "same" in one)


def _bundle(result: dict[str, Any]) -> Rows:
    for name, one in result.items():
        first = (name, f"{one['items']:,}", f"{one['download'] / 1e6:.2f} MB")
        for precision in ("int8", "float16", "float32"):
            model, items, download = first if precision == "int8" else ("", "", "")
            row = {"model": model, "items": items, "download": download, "precision": precision}
            yield row | one[precision] | {"megabytes": one[precision]["bytes"] / 1e6}


_ENGINE_COLUMNS = {
    "millions": "{millions:g}",
    "for": "{purpose}",
    "engine": "{engine}",
    "CPU s a million": "{cpu_per_million:.2f}",
    "grouping": "{grouping}",
    "passes": "{passes}",
    "peak memory": "{peak_mb:,.0f} MB",
    "same model": "{same}",
}

SECTIONS = {
    "field": Section(
        "Beauty and Toys in the field's protocol",
        "Models train on all items except each user's last two, and rank the last item among the whole "
        "catalog. Epsilon is for a user's whole history, and delta is 1e-5. We score each draw of the noise "
        "on 3,000 random users, and the fit without noise on all users. Published numbers have no privacy. "
        "Of these models, only S3-Rec reads attributes.",
        _field,
        {
            "data": "{data}",
            "model": "{model}",
            "epsilon": "{epsilon}",
            "NDCG@10": "{ndcg}",
            "HR@10": "{hr}",
            "of SASRec": "{part:.2f}",
            "draws": "{draws}",
            "CPU s of fit / lists": "{seconds}",
        },
        after="\n\n![NDCG@10 by epsilon](images/field.svg)",
    ),
    "scale": Section(
        "A private fit from a file",
        "`user-factorization` at epsilon 5 on generated ratings, in processor seconds.",
        lambda result: result["sizes"],
        {
            "ratings": "{ratings:,}",
            "users": "{people:,}",
            "items": "{items:,}",
            "fit": "{fit_cpu_seconds:.1f}",
            "read and fit, a million": "{cpu_per_million:.2f}",
            "peak memory": "{peak_mb:,.0f} MB",
        },
    ),
    "scale_times": Section(
        "A private fit from a file with times",
        "This table is for files with times, on one thread. Version 0.1 reads and fits the same file.",
        _scale_times,
        {
            "ratings": "{ratings:,}",
            "version": "{version}",
            "fit": "{fit_cpu_seconds:.1f}",
            "fit, a million": "{fit_cpu_per_million:.2f}",
            "read and fit, a million": "{cpu_per_million:.2f}",
            "peak memory": "{peak_mb:,.0f} MB",
        },
    ),
    "lists": Section(
        "Recommendations for all users",
        "We compute lists of 20 items for 10,000 users from 17,770 items, on one thread. The table shows the "
        "processor time per user and item, and compares it with `implicit.cpu.topk` in the same run. Our "
        "times include fold-in and the table of results.",
        _lists,
        {
            "lists ordered by": "{order}",
            "nanoseconds a score": "{nanoseconds:.2f}",
            "of the peer": "{ratio:.2f}",
        },
    ),
    "engines": Section(
        "One sum, any engine",
        "`user-factorization` at epsilon 1 reads Parquet files that are sorted by time. Times are for all "
        "processes, and include *grouping* by user. Dask and Spark have two local workers.",
        _engines,
        _ENGINE_COLUMNS,
    ),
    "engines_large": Section(
        "Up to a billion ratings on one machine",
        "This table is for shards. The data with 10^8 ratings has 480,000 users and 17,770 items. The data "
        "with 10^9 ratings has 2 million users and 100,000 items. The row for lists of 10^9 ratings is from "
        "an older version, so don't compare its time with the others. Memory is the memory of the processes, "
        "without the system's cache of the shards. "
        "The fit of 10^8 ratings finds more factors than the fit of 10^7, and its cost grows with them.",
        _engines,
        _ENGINE_COLUMNS,
    ),
    "federated": Section(
        "Parties that don't share data",
        "We compare ten parties that share MovieLens 1M with one data owner, by HR@10 among 99 sampled "
        "items. Delta is 1e-5.",
        _federated,
        {
            "epsilon": "{epsilon}",
            "model": "{model}",
            "run": "{run}",
            "HR@10 ± spread (seeds)": "{hr:.3f} ± {std:.3f} ({seeds})",
            "below central": "{below_central:+.3f}",
        },
    ),
    "retraining": Section(
        "A year of monthly fits",
        "We cut MovieLens 1M by time into twelve parts. The budget is epsilon 5 and delta 1e-6 per year. "
        "RMSE is measured on hidden ratings of the last part.",
        _retraining,
        {
            "model": "{model}",
            "RMSE": "{mean:.3f}",
            "range": "{least:.3f} to {most:.3f}",
            "seeds": "{seeds}",
        },
    ),
    "audit": Section(
        "Bounds of audits",
        "The true epsilon is 1. The table shows the largest epsilon that each auditor refutes at 99% "
        "confidence. The other auditor is `CanaryScoreAuditor` of jax-privacy. A dash means that it wasn't "
        "installed for this run.",
        _audit,
        {
            "mechanism": "{mechanism}",
            "games": "{samples:,}",
            "ours": "{ours:.2f}",
            "on the curve": "{ours_curve:.2f}",
            "other auditor": "{peer}",
        },
    ),
    "attacks": Section(
        "Attacks on published models",
        "Shadow models guess who was in the data (1,500 users of MovieLens 1M, 200 canaries, 1,000 items; "
        "32 shadow models and 24 targets each). *Detected* is the share of users detected at 1% false "
        "alarms. *Area* is the area under the ROC curve, with standard errors. *Refuted* is the largest "
        "epsilon refuted at 99% confidence, without assumptions about the noise. Delta is 1e-6.",
        _attacks,
        {
            "model": "{model}",
            "attacked": "{attacked}",
            "games": "{games:,}",
            "area": "{area:.3f} ± {area_deviation:.3f}",
            "detected": "{power} ± {power_deviation}",
            "bound": "{bound}",
            "bound of its noise": "{bound_of_noise}",
            "refuted epsilon": "{refuted:.2f}",
        },
    ),
    "als": Section(
        "Alternating least squares on clicks",
        "Both implementations have the same loss, number of factors, and iterations, on MovieLens 1M. Times "
        "are medians of clock times, on a busy machine.",
        _als,
        {
            "implementation": "{side}",
            "seconds": "{seconds:.1f}",
            "HR@10": "{hr:.3f}",
            "NDCG@10": "{ndcg:.3f}",
        },
    ),
    "als_ratings": Section(
        "Alternating least squares on ratings",
        "The data has a million generated ratings. All settings are defaults. `implicit` learns from clicks.",
        _als_ratings,
        {"fit": "`{side}`", "processor seconds": "{seconds:.1f}", "peak memory": "{peak_mb:,.0f} MB"},
    ),
    "bundle": Section(
        "Bundles in a browser",
        "We bundled `user-factorization` models at epsilon 5, and compared ten recommendations per user in "
        "Chromium with `recommend`, for users in the data. Times are medians. The page loads the int8 model.",
        _bundle,
        {
            "model": "{model}",
            "items": "{items}",
            "the page loads": "{download}",
            "precision": "{precision}",
            "model file": "{megabytes:.2f} MB",
            "ms a list": "{median_ms:.1f}",
            "items shared": "{shared:.2%}",
            "lists equal": "{equal:.1%}",
        },
    ),
    "frank_wolfe": Section(
        "A round of private Frank-Wolfe",
        "Processor seconds of a round of Oja's method, compared with the sparse products that it needs.",
        lambda result: result["sizes"],
        {
            "ratings": "{ratings:,}",
            "first round": "{round_seconds:.3f}",
            "eight bare products": "{bare_seconds:.3f}",
            "ratio": "{ratio:.2f}",
            "ratio of a later round": "{later_ratio:.2f}",
        },
    ),
    "exports": Section(
        "Exports",
        "We compare lists of ten items from an exported index with `recommend`, for one fit of "
        "`user-factorization` on interactions.",
        _exports,
        {
            "data, epsilon, target": "{name}",
            "users": "{people}",
            "items in common": "{same:.2%}",
            "same item at the same rank": "{ranks:.2%}",
            "in common by vectors alone": "{vectors_alone:.2%}",
        },
    ),
}


def write_results(made: Making) -> None:
    """Write docs/results.md from the kept results."""
    made.write(PAGE, page())
