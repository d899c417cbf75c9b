"""`discreet demo`: a tour on embedded data."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from discreet.cli import lib
from discreet.cli.output.printing import Output, answering
from discreet.cli.output.terminal import Terminal
from discreet.report import label_table


def demo() -> Output:
    """Fit a model on embedded data, show its label, recommend items, and compare models."""
    result = lib.demo.run()
    return Output(result.to_json(), lambda: show_tour(result))


def show_tour(tour: lib.Tour) -> None:
    """Print the tour for readers."""
    with answering():
        _show(tour, Terminal())


def _show(tour: lib.Tour, console: lib.Console) -> None:
    facts = tour.data
    console.print(
        f"\nEmbedded data: {facts['users']:,} invented users, {facts['items']:,} invented films, "
        f"{facts['ratings']:,} ratings.\n",
        highlight=False,
    )
    console.print(label_table(tour.model.guarantee, f"Privacy facts: {tour.model.name}"))
    console.print(f"\n{tour.model.guarantee.short()}\n", highlight=False)
    liked = ", ".join(str(item) for item in list(tour.history)[:4])
    table = Table("#", "recommended", "score", "expected stars", title=f"For a user who likes {liked}, ...")
    for rank, one in enumerate(tour.recommendations, start=1):
        table.add_row(
            str(rank), str(one[0]), f"{one[1]:.3f}", "-" if one.stars is None else f"{one.stars:.2f}"
        )
    console.print(table)
    console.print(f"Sorted by score: {tour.model.scorer.ranked_by}.\n", highlight=False)
    console.print(_comparison_table(tour.comparison))
    console.print(
        "RMSE (lower is better) measures how well stars are predicted. NDCG (higher is better) measures "
        "whether the films that users watched next are at the top. A list of popular films scores well on "
        "NDCG. Each model is scored only on the task it is made for. Here, a private model can beat `ease`, "
        "because the data are small and invented, and most interactions follow popularity. These are the "
        "scores of one run. To compare models on your data, run `discreet try FILE`.\n"
        "Your own ratings: [bold]discreet fit ratings.csv --epsilon 1 --out mine.discreet[/]",
        highlight=False,
    )


def _comparison_table(rows: list[dict[str, Any]]) -> Table:
    table = Table("model", "epsilon", *lib.DEMO_METRICS, title="On held-out ratings")
    for row in rows:
        values = [
            f"{row['metrics'][name]:.4f}" if name in row["metrics"] else "-" for name in lib.DEMO_METRICS
        ]
        epsilon = "∞ (not private)" if row["epsilon"] == "inf" else str(row["epsilon"])
        table.add_row(row["model"], epsilon, *values)
    return table
