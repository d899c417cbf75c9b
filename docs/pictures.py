"""Pictures of the documentation: figures of kept results, the map of the package, and explanations."""

from __future__ import annotations

import json
import math
import tomllib
from html import escape
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from build import ROOT, Making
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from pages import kept

from discreet import Biases, Interactions, catalog
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.evaluation.protocol import evaluate
from discreet.evaluation.scoring import PREFIX
from discreet.planning.curves import curves
from discreet.privacy.accounting.gaussian import gaussian_epsilon, gaussian_multiplier
from discreet.privacy.accounting.rounding import sum_up
from discreet.report.odds import power

IMAGES = ROOT / "docs" / "images"
DATA = "movielens-1m"
# Colors that color-blind readers can distinguish, as in the drawn pictures.
BLUE, ORANGE, GREEN, RED, YELLOW, GRAY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#444444"


def use_style() -> None:
    """Set fonts, grid, and colors for all figures that are drawn from now on."""
    plt.rcParams.update(
        {
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.grid": True,
            "grid.color": "#e3e6ea",
            "axes.axisbelow": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.prop_cycle": plt.cycler(color=[BLUE, ORANGE, GREEN, RED, YELLOW]),
            "legend.frameon": False,
            "legend.fontsize": 9,
            "svg.hashsalt": "discreet",
        }
    )


def epsilon_axis(axes: Any, ticks: tuple[float, ...] = (0.1, 1, 10)) -> None:
    """Make the x axis logarithmic, with plain numbers at a few values of epsilon."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("epsilon for a user's whole history")


# Figures of kept results.

REPEAT = 3

Numbers = dict[str, dict[str, list[float]]]


def measured(run: dict[str, Any]) -> Numbers:
    """Return mean and spread of the RMSE of each model at each epsilon, as the accuracy run has them."""
    means, spreads = run["means"][DATA], run["spreads"][DATA]
    found: Numbers = {}
    for name in ("user-factorization", "biases", "als"):
        for epsilon in sorted(means[name], key=float):
            if name == "als" or epsilon != "inf":
                pair = [means[name][epsilon]["rmse"], spreads[name][epsilon]["rmse"]]
                found.setdefault(name, {})[epsilon] = pair
    return found


def draw_attacks(path: Path) -> None:
    """Write the picture of attacks on published models, against the bound of ours."""
    run = kept("attacks")["result"]
    use_style()
    figure, axes = plt.subplots(figsize=(7, 4))
    rates = run["alarms"]
    for row in run["rows"]:
        if row["attacked"] == "users":
            (line,) = axes.plot(rates, row["curve"], label=row["model"])
            if row["epsilon"] is not None:
                most = [power(row["epsilon"], run["delta"], rate) for rate in rates]
                axes.plot(rates, most, ls=":", color=line.get_color(), label="bound of the line above")
    axes.set(xscale="log", yscale="log", xlabel="false alarms", ylabel="detected users", ylim=(5e-4, 1.1))
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120, bbox_inches="tight")
    plt.close(figure)


def own_mean(data: Interactions, repeat: int) -> Numbers:
    """Return the error of each user's own mean, which learns nothing."""
    beside = evaluate(Biases(epsilon=math.inf), data, repeat=repeat, references=True).references
    score = beside[f"{PREFIX}user mean"]["rmse"]
    return {"user mean": {"none": [score.mean, score.std]}}


def _draw_errors(found: Numbers, path: Path) -> None:
    """Write the picture."""
    use_style()
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, style in (("user-factorization", "o-"), ("biases", "s--")):
        means, spreads = zip(*found[name].values(), strict=True)
        axes.errorbar([float(e) for e in found[name]], means, spreads, fmt=style, label=f"{name} (discreet)")
    axes.axhline(found["user mean"]["none"][0], color="black", lw=0.8, ls=":", label="each user's own mean")
    axes.axhline(found["als"]["inf"][0], color="black", lw=0.8, label="als, not private")
    epsilon_axis(axes)
    axes.set_ylabel("RMSE (stars)")
    axes.set_title("MovieLens 1M, 10% held out, delta 1e-5")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_how_many(path: Path) -> None:
    """Write the picture of the gain that is left, by epsilon times users per item."""
    use_style()
    figure, axes = plt.subplots(figsize=(7, 4))
    marks = iter("osD^v")
    for curve in curves():
        if curve.metric == "hr@10":
            sizes = [epsilon * curve.people / curve.items for epsilon, _ in curve.points]
            kept = [100 * curve.share(value) for _, value in curve.points]
            axes.plot(sizes, kept, marker=next(marks), label=f"{curve.dataset} ({curve.people:,} users)")
    axes.axhline(0, color="black", lw=0.8, ls=":")
    axes.set_xscale("log")
    axes.set_ylim(-65, 100)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("epsilon times users per item")
    axes.set_ylabel("share of the possible gain (%)")
    axes.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)


def draw_field(found: dict[str, Any], path: Path) -> None:
    """Write the picture of Beauty and Toys: our lists by epsilon, and published models without privacy."""
    use_style()
    figure, panels = plt.subplots(1, len(found["data"]), figsize=(9, 3.8), squeeze=False)
    for axes, (name, models) in zip(panels[0], found["data"].items(), strict=True):
        for model, style in (("user-factorization", "o-"), ("popularity", "s--")):
            cells = {float(epsilon): cell["ndcg@10"] for epsilon, cell in models[model].items()}
            private = sorted(epsilon for epsilon in cells if math.isfinite(epsilon))
            axes.errorbar(
                private,
                [cells[epsilon]["mean"] for epsilon in private],
                [cells[epsilon]["deviation"] for epsilon in private],
                fmt=style,
                label=f"{model}, private",
            )
        if math.inf in cells:
            without = models["user-factorization"]["inf"]["ndcg@10"]["mean"]
            axes.axhline(without, color="black", lw=0.8, ls=":", label="user-factorization, no noise")
        for peer, side in (("SASRec", "bottom"), ("BERT4Rec", "bottom"), ("GRU4Rec", "top")):
            level = found["published"][name][peer][0]
            axes.axhline(level, color="gray", lw=0.8)
            # To the right of the panel, where no curve is.
            right = axes.get_yaxis_transform()
            axes.text(1.01, level, peer, va=side, fontsize=8, transform=right)
        epsilon_axis(axes, (1, 5, 10))
        axes.set(title=name.replace("_", " "), ylabel="NDCG@10")
    handles, names = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="lower center", ncol=len(names), fontsize=8)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path)
    plt.close(figure)


def draw_measured(made: Making) -> None:
    """Draw errors of ratings by epsilon, how many users, attacks, and Beauty and Toys.

    The first needs MovieLens 1M. Its models come from benchmarks/results/accuracy.json. Each user's mean
    isn't there, so it is measured on as many splits. `--draw` measures nothing, and draws the committed
    numbers again.
    """
    if made.options.draw:
        numbers = json.loads((IMAGES / "accuracy.json").read_text(encoding="utf8"))
    else:
        small = popularity_skewed(n_users=40, n_items=60, mean_per_user=15)
        data = small if made.toy else catalog.load(DATA)
        numbers = {**measured(kept("accuracy")), **own_mean(data, 1 if made.toy else REPEAT)}
    made.write(IMAGES / "accuracy.json", json.dumps(numbers, indent=1) + "\n")
    _draw_errors(numbers, made.place(IMAGES / "accuracy.png"))
    draw_how_many(made.place(IMAGES / "how-many-users.svg"))
    draw_attacks(made.place(IMAGES / "attacks.png"))
    draw_field(kept("field")["result"], made.place(IMAGES / "field.svg"))


FRESH_EPSILON = "2"


def _draw_year(found: dict[str, Any], path: Path) -> None:
    """Write the picture: HR@10 over a year, of a continual release and of an unchanged model."""
    use_style()
    figure, panels = plt.subplots(1, len(found), figsize=(9, 3.6))
    for axes, (name, result) in zip(panels, found.items(), strict=True):
        weekly = result["weekly"]
        cell = weekly[FRESH_EPSILON]
        weeks = range(weekly["releases"] - len(cell["follow_by_release"]), weekly["releases"])
        axes.plot(weeks, cell["follow_by_release"], label="continual release")
        axes.plot(weeks, cell["stale_by_release"], label="from the start of the year")
        axes.axhline(weekly["without_privacy"], color="black", lw=0.8, ls=":", label="without privacy, mean")
        axes.set_title(name)
        axes.set_xlabel("week")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("HR@10 of the next interaction")
    figure.suptitle(f"One yearly budget: epsilon {FRESH_EPSILON}, delta 1e-6 (one draw)")
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="lower center", ncols=3)
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


def draw_fresh(made: Making) -> None:
    """Draw a continual release from the committed replay."""
    _draw_year(kept("follow"), made.place(IMAGES / "fresh.png"))


# The words, style and color of each model's line: the same in both panels and in docs/images/accuracy.png.
LINES = {
    "user-factorization": ("user-factorization", "o-", BLUE),
    "biases": ("biases", "s--", ORANGE),
    "choices-only": ("user-factorization --implicit", "D-", GREEN),
    "popularity": ("popularity", "^:", RED),
}
# Metric: title, the private models, and the best baseline without privacy.
PANELS = {
    "hr@10": (
        "Lists: hit rate at 10 (higher is better)",
        ("choices-only", "user-factorization", "popularity"),
        "markov-chain",
    ),
    "rmse": ("Ratings: RMSE in stars (lower is better)", ("user-factorization", "biases"), "als"),
}


def _draw_panels(results: dict[str, Any], path: Path) -> None:
    """Write the picture: one legend for both panels, and the name of each baseline on its line."""
    use_style()
    figure, both = plt.subplots(1, 2, figsize=(10, 4))
    named = {}
    for axes, (metric, (title, models, baseline)) in zip(both, PANELS.items(), strict=True):
        for model in models:
            label, style, color = LINES[model]
            means, spreads = results["means"][DATA][model], results["spreads"][DATA][model]
            epsilons = sorted((one for one in means if one != "inf"), key=float)
            named[label] = axes.errorbar(
                [float(one) for one in epsilons],
                [means[one][metric] for one in epsilons],
                [spreads[one][metric] for one in epsilons],
                fmt=style,
                color=color,
            )
        level = results["means"][DATA][baseline]["inf"][metric]
        axes.axhline(level, color="black", lw=0.8)
        axes.text(
            0.02,
            level,
            f"{baseline}, not private",
            fontsize=8,
            va="bottom",
            transform=axes.get_yaxis_transform(),
        )
        axes.set(title=title)
        epsilon_axis(axes)
        axes.margins(y=0.1)
    figure.suptitle(
        f"MovieLens 1M, {results['people'][DATA]:,} users, delta {results['delta']:g}, three seeds"
    )
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.legend(named.values(), named.keys(), loc="lower center", ncols=len(named), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_overview(made: Making) -> None:
    """Draw the README's picture: lists and ratings against epsilon."""
    _draw_panels(kept("accuracy"), made.place(IMAGES / "overview.png"))


# The map of the package.

LAYERS = IMAGES / "layers.svg"
# What a layer is for, by one of its packages.
_NOTES = {
    "__main__": "python -m discreet",
    "cli": "the command line",
    "service": "HTTP",
    "demo": "demo, papers",
    "model_settings": "models by name",
    "dossier": "documents to sign",
    "export": "models in other systems",
    "audit": "attacks",
    "evaluation": "plans, metrics",
    "sources": "shards and engines",
    "testing": "shipped for tests",
    "papers": "systems of five papers",
    "models": "estimators",
    "statistics": "contributions of a user",
    "data": "never import each other",
    "core": "checks, noise bytes, files",
}
_AUDITED = {"privacy", "statistics"}
_LEFT, _WIDTH, _HEIGHT, _GAP = 250, 640, 44, 8
_MAP_STYLE = (
    "text{fill:#1d2733}.note{fill:#444}rect.page{fill:#fbfaf7}rect.package{fill:#dfe9f5;stroke:#5a6b7d}"
    "rect.audited{fill:#ffe3b8}.down{fill:none;stroke:#5a6b7d;stroke-width:2}"
    "@media (prefers-color-scheme:dark){text{fill:#e6e9ee}.note{fill:#b9c0ca}rect.page{fill:#1e2129}"
    "rect.package{fill:#2c3a4d}rect.audited{fill:#5c431c}}"
)


def layers() -> list[list[str]]:
    """Return the packages of each layer, the highest first; folders end in a slash."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))
    contract = project["tool"]["importlinter"]["contracts"][0]["layers"]
    packages = [[one.strip() for one in layer.replace(":", "|").split("|")] for layer in contract]
    return [
        [f"{one}/" if (ROOT / "src" / "discreet" / one).is_dir() else one for one in layer]
        for layer in packages
    ]


def layers_picture() -> str:
    """Return the picture."""
    rows = layers()
    height = len(rows) * (_HEIGHT + _GAP) + 60
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 940 {height}" font-family="system-ui, '
        'sans-serif" font-size="14" role="img" aria-label="The layers of the package: imports go down only">',
        f'<style>{_MAP_STYLE}</style><rect class="page" width="940" height="{height}"/>',
    ]
    for position, packages in enumerate(rows):
        out += _layer(position, packages)
    bottom = height - 46
    out += [
        f'<text class="note" x="16" y="{height - 18}">Imports go down only. Amber, with proofs/: what '
        "a guarantee rests on.</text>",
        f'<path class="down" d="M914 20 V{bottom} M908 {bottom - 10} L914 {bottom + 4} L920 {bottom - 10}"/>',
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def _layer(position: int, packages: list[str]) -> list[str]:
    top = 14 + position * (_HEIGHT + _GAP)
    names = {one.rstrip("/") for one in packages}
    note = next((words for name, words in _NOTES.items() if name in names), "")
    out = [f'<text class="note" x="16" y="{top + 27}">{note}</text>']
    width = (_WIDTH - _GAP * (len(packages) - 1)) / len(packages)
    for number, package in enumerate(packages):
        left = _LEFT + number * (width + _GAP)
        kind = "package audited" if package.rstrip("/") in _AUDITED else "package"
        out += [
            f'<rect class="{kind}" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_HEIGHT}" rx="7"/>',
            f'<text x="{left + width / 2:.1f}" y="{top + 27}" text-anchor="middle">{escape(package)}</text>',
        ]
    return out


def draw_layers(made: Making) -> None:
    """Draw the layers of the package from the import contract in pyproject.toml."""
    made.write(LAYERS, layers_picture())


# Explanations.

BUDGET, DELTA, RELEASES = 5.0, 1e-6, 12
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_SVG_STYLE = """<style>
.t{font:14px sans-serif;fill:#333} .s{font:12px sans-serif;fill:#555} .h{font:bold 14px sans-serif;fill:#333}
.box{fill:#fff;stroke:#888} .part{fill:#dfe9f5;stroke:#5a6b7d} .note{fill:#fbf3e6;stroke:#d55e00}
.k{stroke:#888;fill:none;stroke-width:1.5} .b{stroke:#0072b2;fill:none;stroke-width:2}
.o{stroke:#d55e00;fill:none;stroke-width:2;stroke-dasharray:6 4}
</style>"""
# Lines of a label with what they mean, by group.
_LABEL = {
    "the guarantee": (
        ("Guarantee", "PRIVATE", "or PRIVATE IF, with conditions"),
        ("epsilon, delta", "1, 1e-06", "how much one user can change the release"),
        ("Protects", "a user's whole history", "the unit: what stays hidden"),
        ("Against", "everyone but the user", "from whom it stays hidden"),
    ),
    "its basis": (
        ("Basis", "proved", "a proof note covers the code"),
        ("Assumed", "the catalog is public", "if false, the guarantee doesn't apply"),
        ("Noise", "operating system entropy", "simulated noise protects no user"),
    ),
    "its use": (
        ("Ledger", "release 3 of 12", "also what is spent and left, with --ledger"),
        ("Not for", "a user's rating of one item", "uses that the release doesn't support"),
    ),
}


def label() -> str:
    """Return the parts of a label, with the question that each line answers."""
    lines, y = [], 40
    for group, rows in _LABEL.items():
        height = 26 * len(rows) + 2
        lines.append(f'<rect class="part" x="138" y="{y - 18}" width="330" height="{height}" rx="6"/>')
        lines.append(f'<text class="h" x="14" y="{y}">{group}</text>')
        for name, value, meaning in rows:
            lines.append(f'<text class="h" x="150" y="{y}">{name}</text>')
            lines.append(f'<text class="t" x="268" y="{y}">{value}</text>')
            lines.append(f'<text class="s" x="482" y="{y}">{meaning}</text>')
            y += 26
        y += 18
    return _svg(760, y - 10, "The three groups of lines on a label, and what each line means", lines)


def federation() -> str:
    """Return who sends what in a federation with shared noise."""
    lines = []
    for place, name in enumerate(("party A", "party B", "party C")):
        y = 30 + 80 * place
        lines += [
            f'<rect class="part" x="14" y="{y}" width="180" height="60" rx="6"/>',
            f'<text class="h" x="26" y="{y + 24}">{name}</text>',
            f'<text class="s" x="26" y="{y + 44}">ratings stay here</text>',
            f'<path class="b" d="M194 {y + 26} C290 {y + 26} 300 140 398 140"/>',
            f'<path class="o" d="M194 {y + 48} C290 {y + 48} 300 296 398 296"/>',
        ]
    lines += [
        '<rect class="box" x="400" y="104" width="170" height="74" rx="6"/>',
        '<text class="h" x="412" y="128">coordinator</text>',
        '<text class="s" x="412" y="148">adds masked sums,</text>',
        '<text class="s" x="412" y="165">sees only noisy totals</text>',
        '<rect class="note" x="400" y="262" width="170" height="66" rx="6"/>',
        '<text class="h" x="412" y="286">keeper</text>',
        '<text class="s" x="412" y="306">has mask keys,</text>',
        '<text class="s" x="412" y="322">never an answer</text>',
        '<path class="k" d="M485 262 L485 180"/>',
        '<text class="s" x="494" y="226">sum of the masks</text>',
        '<path class="k" d="M570 140 L640 140"/>',
        '<rect class="part" x="642" y="110" width="104" height="62" rx="6"/>',
        '<text class="h" x="654" y="136">model</text>',
        '<text class="s" x="654" y="156">with its label</text>',
        '<path class="b" d="M14 296 L44 296"/><text class="s" x="52" y="300">sum + noise + mask</text>',
        '<path class="o" d="M14 318 L44 318"/><text class="s" x="52" y="322">key of the mask</text>',
    ]
    return _svg(760, 344, "Parties send masked sums to the coordinator and mask keys to the keeper", lines)


def draw_ledger(path: Path) -> None:
    """Write what twelve equal releases cost together after each month, by two accounts."""
    use_style()
    whole = gaussian_multiplier(BUDGET, DELTA)
    each = gaussian_epsilon(whole * RELEASES**0.5, DELTA)
    counts = range(1, RELEASES + 1)
    gaussian = [gaussian_epsilon(whole * (RELEASES / count) ** 0.5, DELTA) for count in counts]
    adding = [sum_up([each] * count) for count in counts]
    figure, axes = plt.subplots(figsize=(7, 3.8))
    axes.bar(MONTHS, [each] * RELEASES, color="#c9d6e3", label=f"one release: epsilon {each:.2f}")
    axes.plot(MONTHS, adding, "s--", color=ORANGE, label="spent, if epsilons are added")
    axes.plot(MONTHS, gaussian, "o-", color=BLUE, label="spent, in a Gaussian account")
    axes.axhline(BUDGET, color=GRAY, lw=1)
    axes.text(0, BUDGET, f"budget: epsilon {BUDGET:g}", va="bottom", fontsize=9, color=GRAY)
    axes.set(ylabel="epsilon", title=f"A ledger over a year, at delta {DELTA:g}")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0.88))
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _svg(width: int, height: int, about: str, lines: list[str]) -> str:
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
    page = f'<rect width="{width}" height="{height}" fill="#fff"/>'
    return "\n".join([f'{opening}aria-label="{about}">', _SVG_STYLE, page, *lines, "</svg>"]) + "\n"


def draw_explanations(made: Making) -> None:
    """Draw the parts of a label, a ledger over a year, and who sees what in a federation."""
    for name, drawn in (("label", label), ("federation", federation)):
        made.write(IMAGES / f"{name}.svg", drawn())
    draw_ledger(made.place(IMAGES / "ledger.svg"))
