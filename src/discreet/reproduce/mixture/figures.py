"""Plot noise and errors; matplotlib is only needed here."""

from __future__ import annotations

import numpy as np

from discreet.reproduce import save_plot

#: What the text prints for Figure 4; the figure's own values are not printed.
PRINTED = {
    "movielens-100k": "printed (text): mixture below ISGD by 21 % at 0.1, 16 % at 1",
    "jester": "printed (text): mixture below ISGD by 35 % at 0.1, 28 % at 1",
}
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
    save_plot(figure, folder / "figure2_noise.svg")
    plt.close(figure)


def _error(values) -> float:
    """Return the standard error over folds; none is drawn for a single one."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def plot_errors(name: str, errors, folder) -> None:
    """Draw the error of every method against epsilon, with one standard error over folds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(6, 4), constrained_layout=True)
    for method, (color, line) in SHOWN.items():
        if not errors.get(method):
            continue
        curve = {float(key): values for key, values in errors[method].items() if key != "inf"}
        means = [np.mean(values) for values in curve.values()]
        spreads = [_error(values) for values in curve.values()]
        panel.errorbar(list(curve), means, spreads, color=color, linestyle=line, label=method, capsize=2)
    if name in PRINTED:
        panel.plot([], [], " ", label=PRINTED[name])
    if "inf" in errors.get("local-sgd tuned", {}):
        floor = float(np.mean(errors["local-sgd tuned"]["inf"]))
        panel.axhline(floor, color="black", linewidth=0.8, label="non-private MF (SGD)")
    panel.set_xlabel("epsilon a rating (private-gradients: epsilon a person)")
    panel.set_ylabel("RMSE")
    panel.set_title(name)
    panel.legend(fontsize=7)
    save_plot(figure, folder / f"figure4_{name}.svg")
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
        means, spreads = ([take(curve[place]) for place in places] for take in (np.mean, _error))
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
    save_plot(figure, folder / "figure3_movielens-100k.svg")
    plt.close(figure)
