"""Other packages add estimators, scorers, metrics and data sources; built-in names stay ours."""

import logging
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from discreet.core import registry
from discreet.core.checks import DiscreetError
from discreet.core.registry import (
    ESTIMATORS,
    METRIC_EXAMPLES,
    METRICS,
    PRIVATE_METRIC_EXAMPLES,
    SCORERS,
    SOURCES,
)
from discreet.evaluation.metrics import ListMetric, Metric, RatingMetric, metric_kind, parse_metrics
from discreet.evaluation.private import private_metric
from discreet.evaluation.scoring import measure
from discreet.model_settings import MODELS, describe_models, estimator
from discreet.models.scorers.scorer import scorer_class
from discreet.statistics.data_source import open_source
from discreet.testing import refuses
from toy import toy_interactions

ROOT = Path(__file__).parents[1]
OLD = ROOT / "tests" / "formats" / "v0.1" / "clicks.discreet"

CODE = """
import dataclasses
from typing import ClassVar, final

import numpy as np

from discreet.evaluation import ListMetric, RatingMetric, ShownMetric
from discreet.models.estimator import Estimator, joint_promise
from discreet.models.scorers.item_item import PopularityScorer


@final
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OurScorer(PopularityScorer):
    kind: ClassVar[str] = "our-scorer"


@final
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alphabet(Estimator):
    "List items in the order of the catalog, from no data at all."

    name: ClassVar[str] = "alphabet"
    feedback = "implicit"
    source: ClassVar[str] = "a test"

    epsilon: float
    delta: float = 1e-6

    def promise(self, facts):
        return joint_promise(self, facts, "proofs/popularity.md")

    def _train(self, session, progress):
        return OurScorer(popularity=-np.arange(session.n_items, dtype=np.float64))


def first(ranks, k):
    return (np.minimum.reduceat(ranks.better, ranks.starts) == 0).astype(float)


HITS_FIRST = ListMetric(name="first1", usual_depth=1, private=True, function=first)
BIAS = RatingMetric(name="bias", private=True, function=lambda guess, truth: float(np.mean(guess - truth)))
SHOWN = ShownMetric(name="shown", usual_depth=3, private=True, function=lambda lists, _: float(lists.max()))


def opened(path):
    return 3 if str(path).endswith(".ours") else None
"""

POINTS = """
[discreet.estimators]
alphabet = {module}:Alphabet
biases = {module}:Alphabet
wrong-name = {module}:Alphabet
missing = {module}:Missing
[discreet.scorers]
our-scorer = {module}:OurScorer
wrong-kind = {module}:Alphabet
[discreet.metrics]
first1 = {module}:HITS_FIRST
bias = {module}:BIAS
shown = {module}:SHOWN
wrong = {module}:first
[discreet.sources]
ours = {module}:opened
"""


def install(folder, name, points, code=CODE):
    """Write a package with entry points, as an installer would."""
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text(textwrap.dedent(code))
    described = folder / f"{module}-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(points.format(module=module))


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    install(tmp_path, "discreet-plug-in", POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    metric_kind.cache_clear()
    yield tmp_path
    metric_kind.cache_clear()
    sys.modules.pop("discreet_plug_in", None)


def test_an_estimator_and_its_file_come_from_another_package(plug_in, tmp_path):
    import discreet

    data = toy_interactions(n_users=30)
    model = estimator("alphabet", {"epsilon": 1.0}).fit(data)
    model.save(tmp_path / "m.discreet")
    again = discreet.load(tmp_path / "m.discreet")
    assert again.recommend([], 2)[0][0] == "item 00" and again.scorer.kind == "our-scorer"
    assert "alphabet" in MODELS and "alphabet" in set(ESTIMATORS) and len(list(MODELS)) == len(MODELS)


def test_a_file_whose_package_is_missing_is_one_sentence(tmp_path):
    assert "alphabet" not in MODELS
    with refuses("malformed-part", part="kind"):
        scorer_class("our-scorer")
    with refuses("unknown-choice", name="model", value="alphabet"):
        estimator("alphabet", {"epsilon": 1.0})


def test_a_built_in_name_stays_ours(plug_in, caplog):
    from discreet.models.biases import Biases

    with caplog.at_level(logging.WARNING):
        assert "biases" in list(ESTIMATORS) and list(ESTIMATORS).count("biases") == 1
    warned = caplog.records[0]
    assert warned.args == ("discreet-plug-in", "estimator", "biases")
    assert MODELS["biases"] is Biases and ESTIMATORS.package("biases") == "discreet"


@pytest.mark.parametrize(
    ("look", "said"),
    [
        (lambda: MODELS["wrong-name"], "'wrong-name' of the package discreet-plug-in is not a subclass"),
        (lambda: MODELS["missing"], "'missing' of the package discreet-plug-in cannot be imported"),
        (lambda: scorer_class("wrong-kind"), "'wrong-kind' of the package discreet-plug-in is not"),
        (lambda: Metric.parse("wrong@3"), "'wrong' of the package discreet-plug-in is not a RatingMetric"),
        (lambda: open_source("data.ours"), "data source 'ours' of the package discreet-plug-in returned"),
        (describe_models, "of the package discreet-plug-in"),
    ],
)
def test_a_broken_entry_is_one_sentence_that_names_the_package(plug_in, look, said):
    with pytest.raises(DiscreetError) as refusal:
        look()
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


def test_a_name_of_two_packages_is_refused(plug_in):
    install(plug_in, "discreet-rival", "[discreet.estimators]\nalphabet = discreet_rival:Alphabet\n")
    with refuses(
        "registered-twice", noun="estimator", name="alphabet", packages=("discreet-plug-in", "discreet-rival")
    ):
        MODELS["alphabet"]


def test_the_list_of_models_names_the_package(plug_in):
    points = plug_in / "discreet_plug_in-1.0.dist-info" / "entry_points.txt"
    points.write_text("[discreet.estimators]\nalphabet = discreet_plug_in:Alphabet\n")
    (row,) = (row for row in describe_models() if row["name"] == "alphabet")
    assert row["source"] == "a test" and row["summary"].endswith(" (package discreet-plug-in)")


def test_a_data_source_of_another_package_is_asked_last(plug_in):
    assert list(SOURCES) == ["shards", "ours"] and open_source(plug_in / "nothing here") is None


def test_metrics_of_another_package(plug_in):
    from discreet.data.splits import Split
    from discreet.evaluation.scoring import Reference

    metrics = parse_metrics("first1@1,first1@1:9,bias,shown@3")
    assert [metric.ranks for metric in metrics] == [True, True, False, True]
    data = toy_interactions(n_users=20)
    split = Split.by_mask(data, np.arange(data.n_ratings) % 5 == 0)
    guess = Reference(users=np.zeros(20) + 3, items=np.arange(40.0))
    found = measure(guess, split.train, split.test, metrics)
    assert 0 <= found["first1@1"] <= 1 and found["bias"] > 5 and found["shown@3"] > 1
    (plug_in / "discreet_plug_in-1.0.dist-info" / "entry_points.txt").write_text(
        "[discreet.metrics]\nfirst1 = discreet_plug_in:HITS_FIRST\n"
    )
    # A package that is installed changes its folder; here a file of one changes.
    registry._entry_points.cache_clear()
    with refuses("unknown-metric", metric="nonsense"):
        Metric.parse("nonsense")


def test_only_list_metrics_of_others_can_be_released_privately(plug_in):
    assert private_metric("first1@1").kind == "first1"
    for text in ("bias", "shown@3", "recall@20"):
        with refuses("metric-does-not-fit", subject="private scores"):
            private_metric(text)


def test_what_help_says_of_metrics_is_what_they_are():
    kinds = [metric_kind(name) for name in METRICS.built_in]
    assert tuple(kind.example for kind in kinds) == METRIC_EXAMPLES
    assert {kind.example for kind in kinds if kind.private} == set(PRIVATE_METRIC_EXAMPLES)
    assert all(isinstance(kind, ListMetric) or kind.name == "rmse" for kind in kinds if kind.private)
    assert all(kind.of_error is None or kind.function for kind in kinds if isinstance(kind, RatingMetric))
    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf8")
    assert [name for name in METRICS.built_in if f"`{name}" not in page] == []


@pytest.mark.parametrize("table", [ESTIMATORS, SCORERS, METRICS, SOURCES], ids=lambda table: table.noun)
def test_every_built_in_place_exists(table):
    assert all(table[name] is not None for name in table.built_in)


def test_built_in_names_need_no_search_of_installed_packages(tmp_path):
    """Searching them takes tens of milliseconds; `--help` and `recommend` know their names."""
    code = f"""
        import importlib.metadata, sys
        def never(**asked):
            raise AssertionError(asked)
        real, importlib.metadata.entry_points = importlib.metadata.entry_points, never
        from discreet.core.registry import ESTIMATORS, METRICS, SCORERS
        assert "biases" in ESTIMATORS and ESTIMATORS["biases"] and METRICS["hr"] and SCORERS["ratings"]
        from discreet.cli import main
        for line in (["label", {str(OLD)!r}], ["--help"], ["evaluate", "--help"]):
            sys.argv = ["discreet", *line]
            try:
                main()
            except SystemExit as end:
                assert not end.code
        try:
            "nothing" in ESTIMATORS
        except AssertionError:
            print("searched")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    # The twin: a name that is not ours does search.
    assert run.stdout.splitlines()[-1] == "searched"
    assert "capped-recall" in run.stdout
