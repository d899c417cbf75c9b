"""Plot noise and errors; matplotlib is only needed here."""

from __future__ import annotations

import numpy as np

SHOWN = {
    "weighted PCA rank 1": ("tab:brown", "-"),
    "local-channel": ("tab:blue", "-"),
    "local-channel on the device": ("tab:blue", ":"),
    "local-mixture": ("tab:orange", "-"),
    "local-sgd as described": ("tab:red", "--"),
    "local-sgd tuned": ("tab:red", "-"),
    "private-gradients": ("tab:purple", "-"),
    "shrunken debiased item mean": ("tab:green", "-"),
    "debiased global mean": ("tab:gray", ":"),
}


def plot_noise(drawn, folder) -> None:
    """Draw histograms of plain and bounded noise, one panel an epsilon."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(drawn), figsize=(8, 3), constrained_layout=True)
    for panel, (epsilon, (plain, bounded)) in zip(panels, drawn.items(), strict=True):
        edges = np.linspace(-12, 12, 97)
        panel.hist(plain, bins=edges, density=True, alpha=0.5, label="Laplace")
        panel.hist(bounded, bins=edges, density=True, alpha=0.5, label="bounded Laplace")
        panel.set_title(f"epsilon = {epsilon:g}")
        panel.set_xlabel("noise (stars)")
        panel.legend(fontsize=7)
    figure.savefig(folder / "figure2_noise.png", dpi=110)
    plt.close(figure)


def plot_errors(name: str, errors, folder) -> None:
    """Draw the error of every method against epsilon, with the spread over folds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(6, 4), constrained_layout=True)
    for method, (color, line) in SHOWN.items():
        if not errors.get(method):
            continue
        curve = {float(key): values for key, values in errors[method].items() if key != "inf"}
        means = [np.mean(values) for values in curve.values()]
        spreads = [np.std(values) for values in curve.values()]
        panel.errorbar(list(curve), means, spreads, color=color, linestyle=line, label=method, capsize=2)
    if "inf" in errors.get("local-sgd tuned", {}):
        floor = float(np.mean(errors["local-sgd tuned"]["inf"]))
        panel.axhline(floor, color="black", linewidth=0.8, label="non-private MF (SGD)")
    panel.set_xlabel("epsilon a rating (private-gradients: epsilon a person)")
    panel.set_ylabel("RMSE")
    panel.set_title(name)
    panel.legend(fontsize=7)
    figure.savefig(folder / f"figure4_{name}.png", dpi=110)
    plt.close(figure)


def plot_figure3(errors, folder) -> None:
    """Draw the mixture, in both fits, against private gradients, as Figure 3 does."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(6, 4), constrained_layout=True)
    for method in ("weighted PCA rank 1", "local-mixture", "private-gradients"):
        curve = {float(key): values for key, values in errors[method].items() if float(key) <= 1.6}
        places = sorted(curve)
        means, spreads = ([take(curve[place]) for place in places] for take in (np.mean, np.std))
        color, line = SHOWN[method]
        panel.errorbar(places, means, spreads, color=color, linestyle=line, label=method, capsize=2)
    floor = float(np.mean(errors["local-sgd tuned"]["inf"]))
    panel.axhline(floor, color="black", linewidth=0.8, label="non-private MF (SGD)")
    panel.set(
        xlabel="epsilon a rating (private-gradients: a person)",
        ylabel="RMSE",
        title="Figure 3, MovieLens 100K",
    )
    panel.legend(fontsize=7)
    figure.savefig(folder / "figure3_movielens-100k.png", dpi=110)
    plt.close(figure)
