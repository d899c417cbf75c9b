"""A research comparison: methods side by side on the same splits, with spread, on one page."""

import tempfile
from pathlib import Path

import discreet
from discreet.data.datasets.synthetic import popularity_skewed

data = popularity_skewed(n_users=800, n_items=120, mean_per_user=25)
methods = [
    *(discreet.UserFactorization(epsilon=epsilon) for epsilon in (0.5, 1.0, 4.0)),
    *(discreet.Biases(epsilon=epsilon) for epsilon in (0.5, 1.0, 4.0)),
    discreet.Als(),
]
folder = Path(tempfile.mkdtemp())
found = discreet.compare(methods, data, metrics="rmse,ndcg@10", repeat=2, keep=folder / "kept.jsonl")

for one in found:
    score = one.metrics["rmse"]
    print(f"{one.model:20} epsilon {one.parameters['epsilon']:4} rmse {score.mean:.3f} ± {score.std:.3f}")
discreet.write_report(found, folder / "comparison.html", title="Methods on invented films")
