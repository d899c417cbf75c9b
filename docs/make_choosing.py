"""Fill the tables of accuracy.md from benchmarks/results/accuracy.json: which model wins where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from make_readme import fill
from making import Making

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "accuracy.md"
RESULTS = ROOT / "benchmarks" / "results" / "accuracy.json"
EPSILONS = ("0.1", "0.5", "1", "2", "5", "10")
NAMES = {
    "restaurant-consumer": "restaurants",
    "amazon-instant-video": "Amazon instant video",
    "movielens-100k": "MovieLens 100K",
    "movielens-latest-small": "MovieLens latest small",
    "discreet-demo": "discreet-demo",
    "movietweetings-100k": "MovieTweetings",
    "jester": "Jester",
    "movielens-1m": "MovieLens 1M",
    "amazon-sports": "Amazon sports",
}
LISTS = ("user-factorization", "choices-only", "implicit-objective", "popularity")
RATINGS = ("user-factorization", "covariance-svd", "frank-wolfe", "biases")
LATER = ("user-factorization", "choices-only", "recent-choices", "popularity", "recent-popularity")
# What a model is called on the page, where the results have another name for it.
SHOWN = {
    "choices-only": "user-factorization --implicit",
    "recent-choices": "user-factorization --implicit --set half_life=30",
    "recent-popularity": "popularity --set half_life=30",
}
BARS = {
    "hr@10": ("implicit-als", "ease", "item-knn", "markov-chain"),
    "rmse": ("als",),
    "later:hr@10": ("ease", "item-knn", "markov-chain"),
}


def table(results: dict[str, Any], models: tuple[str, ...], metric: str) -> str:
    """Return one row for each data set and model, the best private model of each column in bold."""
    lines = [
        "| data (users) | model | " + " | ".join(EPSILONS) + " | best baseline |",
        "|---|---|" + "---|" * (len(EPSILONS) + 1),
    ]
    for name, title in NAMES.items():
        found = results["means"].get(name, {})
        shown = [model for model in models if any(metric in cell for cell in found.get(model, {}).values())]
        best = {epsilon: _best(found, shown, epsilon, metric) for epsilon in EPSILONS}
        for row, model in enumerate(shown):
            cells = [_cell(found[model].get(epsilon, {}).get(metric), best[epsilon]) for epsilon in EPSILONS]
            head = f"{title} ({results['people'][name]:,})" if row == 0 else ""
            bar = _bar(found, metric) if row == 0 else ""
            lines.append(f"| {head} | `{SHOWN.get(model, model)}` | " + " | ".join(cells) + f" | {bar} |")
    return "\n".join(lines)


def _best(found: dict[str, Any], models: list[str], epsilon: str, metric: str) -> float | None:
    values = [found[model][epsilon][metric] for model in models if metric in found[model].get(epsilon, {})]
    return (min(values) if metric == "rmse" else max(values)) if values else None


def _cell(value: float | None, best: float | None) -> str:
    if value is None or best is None:
        return ""
    text = f"{value:.3f}"
    return f"**{text}**" if text == f"{best:.3f}" else text


def _bar(found: dict[str, Any], metric: str) -> str:
    without_noise = {bar: found.get(bar, {}).get("inf", {}) for bar in BARS[metric]}
    bars = {bar: cell[metric] for bar, cell in without_noise.items() if metric in cell}
    if not bars:
        return ""
    name = (min if metric == "rmse" else max)(bars, key=lambda bar: bars[bar])
    return f"{bars[name]:.3f} (`{name}`)"


def filled(text: str, results: dict[str, Any]) -> str:
    """Return the page with its tables as measured."""
    text = fill(text, "lists", table(results, LISTS, "hr@10"))
    text = fill(text, "later", table(results, LATER, "later:hr@10"))
    return fill(text, "ratings", table(results, RATINGS, "rmse"))


def build(made: Making) -> None:
    """Write the files of this module."""
    measured = json.loads(RESULTS.read_text(encoding="utf8"))
    page = filled(PAGE.read_text(encoding="utf8"), measured)
    made.write(PAGE, page)
