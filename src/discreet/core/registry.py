"""Register estimators, scorers, metrics and data sources by name and place, without importing them.

Built-in names are tables in this module. Other packages add names through entry points, in the group that
each registry names; these are read only when a name is not built in, or when all names are wanted. A built-in
name cannot be taken over.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from discreet.core.checks import DiscreetError
from discreet.core.errors import BrokenPlugin, RegisteredTwice
from discreet.core.progress import logger

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@final
class Registry(Mapping[str, Any]):
    """Objects of one kind by name. An object is imported when it is looked up."""

    __slots__ = ("built_in", "group", "noun")

    def __init__(self, noun: str, group: str, built_in: Mapping[str, str]) -> None:
        self.noun, self.group, self.built_in = noun, group, built_in

    def __getitem__(self, name: str) -> Any:
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            return getattr(importlib.import_module(module), attribute)
        points = self._installed()[name]
        if len(points) > 1:
            owners = tuple(_owner(point) for point in points)
            raise RegisteredTwice(noun=self.noun, name=name, packages=owners)
        try:
            return points[0].load()
        # Whatever an import of foreign code raises.
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise self.broken(name, f"cannot be imported from {points[0].value} ({reason})") from error

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self._installed()

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from self._installed()

    def __len__(self) -> int:
        return len(self.built_in) + len(self._installed())

    def package(self, name: str) -> str:
        """Return the name of the package that registers `name`."""
        return "discreet" if name in self.built_in else _owner(self._installed()[name][0])

    def broken(self, name: str, fault: str) -> DiscreetError:
        """Return the error for an entry that is not what it is registered as."""
        return BrokenPlugin(noun=self.noun, name=name, package=self.package(name), fault=fault)

    def _installed(self) -> dict[str, list[EntryPoint]]:
        """Return the entry points of other packages by name; those with a built-in name are skipped."""
        found: dict[str, list[EntryPoint]] = {}
        for point in _entry_points(self.group, tuple(map(_changed, sys.path))):
            if point.name in self.built_in:
                logger.warning(
                    "The package %s registers the %s %r, which is a name of discreet itself; it is ignored.",
                    _owner(point),
                    self.noun,
                    point.name,
                )
            # A package that is on the path twice is still one package.
            elif all(_owner(point) != _owner(other) for other in found.get(point.name, ())):
                found.setdefault(point.name, []).append(point)
        return found


@lru_cache(maxsize=16)
def _entry_points(group: str, path: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group. They are read again if a package was installed meanwhile."""
    # Slow to import, and needed only for names that are not built in.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def _changed(place: str) -> tuple[str, int]:
    """Return a folder of the path, and when it was changed."""
    try:
        return place, Path(place).stat().st_mtime_ns
    except OSError:
        return place, 0


def _owner(point: EntryPoint) -> str:
    return "(unnamed)" if point.dist is None else point.dist.name


#: Functions that open a path as a data source; each returns None if the path is not of its kind.
SOURCES = Registry("data source", "discreet.sources", {"shards": "discreet.sources.shards:open_if_shards"})

#: Subclasses of `discreet.models.estimator.Estimator`.
ESTIMATORS = Registry(
    "estimator",
    "discreet.estimators",
    {
        "user-factorization": "discreet.models.user_factorization.estimator:UserFactorization",
        "biases": "discreet.models.biases:Biases",
        "implicit-objective": "discreet.papers.dpimf.implicit_objective:ImplicitObjective",
        "dpimf": "discreet.papers.dpimf.estimators:Dpimf",
        "dpmf": "discreet.papers.dpimf.estimators:Dpmf",
        "neighbours": "discreet.papers.dpimf.neighbors:ItemNeighbors",
        "popularity": "discreet.models.popularity:Popularity",
        "als": "discreet.models.baselines.als:Als",
        "implicit-als": "discreet.models.baselines.als:ImplicitAls",
        "ease": "discreet.models.baselines.item_item:Ease",
        "item-knn": "discreet.models.baselines.item_item:ItemKnn",
        "markov-chain": "discreet.models.baselines.item_item:MarkovChain",
        "frank-wolfe": "discreet.papers.frank_wolfe.frank_wolfe:FrankWolfe",
        "frank-wolfe-printed": "discreet.papers.frank_wolfe.printed_frank_wolfe:PrintedFrankWolfe",
        "covariance-svd": "discreet.papers.frank_wolfe.covariance_svd:CovarianceSvd",
        "projected-gradient": "discreet.papers.frank_wolfe.projected_gradient:ProjectedGradient",
        "one-bit-input": "discreet.papers.one_bit.estimators:OneBitInput",
        "one-bit-objective": "discreet.papers.one_bit.estimators:OneBitObjective",
        "one-bit-gradient": "discreet.papers.one_bit.estimators:OneBitGradient",
        "one-bit-output": "discreet.papers.one_bit.estimators:OneBitOutput",
        "one-bit-objective-printed": "discreet.papers.one_bit.printed:OneBitObjectivePrinted",
        "one-bit-output-printed": "discreet.papers.one_bit.printed:OneBitOutputPrinted",
        "local-channel": "discreet.papers.mixture.channel:LocalChannel",
        "local-mixture": "discreet.papers.mixture.mixture:LocalMixture",
        "local-nuclear": "discreet.papers.collection.nuclear:LocalNuclear",
        "local-nuclear-plain": "discreet.papers.collection.nuclear:LocalNuclearPlain",
        "local-sgd": "discreet.papers.mixture.sgd:LocalSgd",
        "private-gradients": "discreet.papers.mixture.private_gradients:PrivateGradients",
    },
)

#: The models to use first, the one to start with on top.
FIRST = ("user-factorization", "popularity", "biases", "local-channel")

_SCORERS = "discreet.models.scorers"
#: Subclasses of `discreet.models.scorers.scorer.Scorer` by the name written in files, whose meaning stays.
SCORERS = Registry(
    "scorer",
    "discreet.scorers",
    {
        "choice-and-stars": f"{_SCORERS}.interactions:InteractionsAndRatings",
        "clicks": f"{_SCORERS}.interactions:InteractionScorer",
        "implicit-factors": f"{_SCORERS}.factors:ImplicitFactorScorer",
        "item-weights": f"{_SCORERS}.item_item:ItemWeightsScorer",
        "local-ratings": f"{_SCORERS}.local:LocalScorer",
        "neighbours": f"{_SCORERS}.item_item:NeighborScorer",
        "one-bit": f"{_SCORERS}.one_bit:OneBitScorer",
        "one-bit-cells": f"{_SCORERS}.one_bit:ReleasedCells",
        "popularity": f"{_SCORERS}.item_item:PopularityScorer",
        "profiles": f"{_SCORERS}.profiles:ProfileScorer",
        "projected-gradient": f"{_SCORERS}.low_rank:ProjectedGradientScorer",
        "rank-one-rounds": f"{_SCORERS}.low_rank:SteppedScorer",
        "ratings": f"{_SCORERS}.factors:RatingScorer",
        "sparse-item-weights": f"{_SCORERS}.item_item:SparseWeightsScorer",
        "trained-profiles": f"{_SCORERS}.profiles:TrainedProfileScorer",
        "unsure-ratings": f"{_SCORERS}.factors:UnsureRatingScorer",
    },
)

# As users usually ask for them: the name, and the usual length of the list.
_METRICS = {
    "rmse": "discreet.evaluation.rating_metrics:RMSE",
    "mae": "discreet.evaluation.rating_metrics:MAE",
    "accuracy": "discreet.evaluation.rating_metrics:ACCURACY",
    "are": "discreet.evaluation.rating_metrics:ARE",
    "hr@10": "discreet.evaluation.ranking_metrics:HIT_RATE",
    "ndcg@10": "discreet.evaluation.ranking_metrics:NDCG",
    "recall@20": "discreet.evaluation.ranking_metrics:RECALL",
    "capped-recall@20": "discreet.evaluation.ranking_metrics:CAPPED_RECALL",
    "precision@10": "discreet.evaluation.ranking_metrics:PRECISION",
    "mrr": "discreet.evaluation.ranking_metrics:MRR",
    "map@10": "discreet.evaluation.ranking_metrics:MAP",
    "coverage@10": "discreet.evaluation.ranking_metrics:COVERAGE",
    "novelty@10": "discreet.evaluation.ranking_metrics:NOVELTY",
    "gini@10": "discreet.evaluation.ranking_metrics:GINI",
    "diversity@10": "discreet.evaluation.shown_metrics:DIVERSITY",
    "calibration@10": "discreet.evaluation.shown_metrics:CALIBRATION",
    "content-diversity@10": "discreet.evaluation.shown_metrics:CONTENT_DIVERSITY",
    "content-calibration@10": "discreet.evaluation.shown_metrics:CONTENT_CALIBRATION",
}
#: The built-in metrics as users usually ask for them, for help texts; the second can be released privately.
METRIC_EXAMPLES, PRIVATE_METRIC_EXAMPLES = tuple(_METRICS), ("hr@10", "ndcg@10", "rmse")

#: Instances of the classes in `discreet.evaluation.metrics`.
METRICS = Registry(
    "metric", "discreet.metrics", {usual.partition("@")[0]: place for usual, place in _METRICS.items()}
)
