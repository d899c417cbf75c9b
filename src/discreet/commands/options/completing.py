"""Complete names in a shell: what `discreet --install-completion` sets up asks here."""

from __future__ import annotations

from pathlib import Path

from discreet.names import ESTIMATORS


def complete_model(incomplete: str) -> list[str]:
    """Return the models that begin like this."""
    return [name for name in ESTIMATORS if name.startswith(incomplete)]


def complete_models(incomplete: str) -> list[str]:
    """Return a comma-separated list with its last name completed."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in complete_model(last)]


def complete_dataset(incomplete: str) -> list[str]:
    """Return the datasets that begin like this."""
    from discreet.data.datasets.known import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)]


def complete_data(incomplete: str) -> list[str]:
    """Return the files and folders that begin like this, and the datasets."""
    start = Path(incomplete)
    folder = start if incomplete.endswith("/") else start.parent
    beside = sorted(folder.iterdir()) if folder.is_dir() else []
    found = [f"{path}/" if path.is_dir() else str(path) for path in beside]
    return [*(path for path in found if path.startswith(incomplete)), *complete_dataset(incomplete)]
