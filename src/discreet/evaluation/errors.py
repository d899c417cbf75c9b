"""Errors of evaluations: metrics that don't fit, empty splits, and scores that can't be released."""

from __future__ import annotations

from discreet.core.errors import DataError, DiscreetError, FileError, ParameterError, PrivacyError


class UnknownMetric(ParameterError):
    metric: str
    known: tuple[str, ...]
    close: str | None = None
    text = """{metric!r} isn't a metric.{close:?} The metrics are {known:all}. :99, :liked, :few, and :many
    can follow."""


class MetricDoesNotFit(ParameterError):
    metric: str
    subject: str
    examples: tuple[str, ...]
    text = "{metric} isn't available for {subject}, so it can't be computed. Choose {examples:any}."


class NotAnEstimator(ParameterError):
    function: str
    found: str
    text = """{function}() fits models itself, and got {found}, which can't be fitted. Pass an estimator, such
    as Popularity(epsilon=1.0). `discreet model score` scores a fitted model."""


class TableNeeded(ParameterError):
    metric: str
    text = """{metric} compares items by a public table. Pass {arg:item_features=FILE}, or choose diversity or
    calibration."""


class GroupsNeedTable(ParameterError):
    column: str
    text = """{arg:by={column}} needs a table with a column {column!r}. Pass {arg:user_features=FILE} or
    {arg:item_features=FILE}, or use activity or popularity."""


class SplitNeedsMemory(ParameterError):
    split: str
    text = """{arg:split={split}} needs data in memory, but this data is in shards. For shards, use
    random:0.1, kfold:10, or leave-one-out."""


class NothingHeldOut(DataError):
    metric: str = "the metrics"
    text = """The split hides no ratings that {metric} can use, so there is nothing to score. Hide a larger
    share, or use another split."""


class NothingToRank(DataError):
    metric: str
    text = "No user has both a history and a list that {metric} can use. Use another split."


class TooFewToSample(DataError):
    users: int
    of: int
    count: int
    text = """{users} of {of:user has|users have} fewer than {count} items left to sample. Rank the whole
    catalog: remove :{count} from the metric."""


class SplitOverlaps(DataError):
    count: int
    text = """{count:held-out rating is|held-out ratings are} also in the training data, so scores would be
    too good. Keep each rating in only one part."""


class SplitMismatch(ParameterError):
    text = """The training and test data have different users or items, so they can't be compared. Split one
    dataset."""


class ModelBroken(DiscreetError):
    problem: str
    text = """The model returned {problem}, so it has no score. It must return finite numbers, one row per
    user."""


class NothingGiven(ParameterError):
    name: str
    least: int = 1
    text = "{arg:{name}} has too few entries, so there is nothing to compare. Pass at least {least}."


class ZeroTruth(DataError):
    text = """The true values are all 0, so a relative error has no meaning. Choose another metric, such as
    rmse."""


class ShapesDiffer(ParameterError):
    name: str
    shape: tuple[int, ...]
    other: str
    other_shape: tuple[int, ...]
    text = """{name} has the shape {shape}, but {other} has {other_shape}, and they must form pairs. Pass
    equal shapes."""


class BudgetsDiffer(ParameterError):
    text = """The models have different epsilons or deltas, but one cost covers all of them together. Use the
    same epsilon and delta for all models."""


class NotSharable(PrivacyError):
    model: str
    text = """{model} doesn't protect a user's whole history by Gaussian noise, so its budget can't be shared
    with scores. Score it under a separate guarantee (evaluate_privately)."""


class PrivateModelNeeded(ParameterError):
    model: str
    text = "{model} isn't private, so private scores of it have no purpose. Score it with `evaluate`."


class ScoreReveals(PrivacyError):
    model: str
    text = """{model} isn't private, so its score may reveal any user in its training data. Score a private
    model, or pass {arg:models_are_public=True} if it was trained on public data."""


class ScoreOutOfBounds(ParameterError):
    text = """A user's score is outside of -1/2 to 1/2, so the noise would not cover it. Scale the scores to
    this range before you sum them."""


class CatalogsDiffer(DataError):
    text = """The model has a different catalog than the data, so items can't be matched. Read the data with
    the model's catalog."""


class NotAComparison(FileError):
    path: object
    text = """{path} isn't a comparison that discreet stored, so it can't be resumed and was not changed.
    Choose another file."""


class NoSharedWords(DataError):
    text = """The table of items has no word that several items share, so it can't compare items. Put item IDs
    into its first column, and genres or tags into others."""


class ThresholdsDiffer(ParameterError):
    above: float
    own: float
    text = "{arg:above} is {above}, but the model has its own threshold, {own}. Remove {arg:above}."


class NoRatingsToPredict(DataError):
    text = """The data has no ratings, or all are equal, so there is nothing to predict. Ask about
    recommendations: {arg:purpose=lists}."""


class TooFewUsers(DataError):
    users: int
    least: int
    text = """Only {users:user has|users have} at least two interactions, but a comparison needs {least}. Add
    data: most private models need thousands of users to beat popular items."""
