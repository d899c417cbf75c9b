"""The comparison and its page."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from discreet import model_settings
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.evaluation import Evaluation, Score, compare, render_report, write_report
from discreet.evaluation.comparison import shown_names, variant_names
from discreet.evaluation.report import cost_of_privacy
from discreet.evaluation.scoring import PREFIX
from discreet.privacy.guarantee import Assumption, Basis, Fact, Guarantee, Kind, Neighbors, Trust, Unit
from discreet.testing import refuses

BESIDE = {PREFIX + "user mean": {"rmse": Score((1.04, 1.06))}}


def evaluation(model, epsilon, metrics, *, unit=Unit.USER, references=None):
    return Evaluation(
        model=model,
        parameters={"epsilon": epsilon},
        data={"users": 1000, "items": 50, "ratings": 20_000},
        guarantee=Guarantee(
            epsilon=epsilon,
            unit=unit,
            neighbors=Neighbors.ADD_OR_REMOVE,
            trust=Trust.JOINT,
            basis=Basis.NONE if math.isinf(epsilon) else Basis.PROVED,
            assumes=(Assumption.of(Kind.DECLARED, Fact.CATALOG, items=50),),
            simulated=True,
        ),
        metrics={name: Score(values) for name, values in metrics.items()},
        seconds={"fit": 0.5, "predict": 0.1},
        peak_mb=100.0,
        references=references or {},
    )


@pytest.fixture(scope="module")
def evaluations():
    return (
        evaluation("biases", 0.1, {"rmse": (1.01, 1.03), "hr@10": (0.2, 0.4)}, references=BESIDE),
        evaluation("biases", 1.0, {"rmse": (0.97, 0.99), "hr@10": (0.3, 0.5)}),
        evaluation("popularity", 1.0, {"hr@10": (0.5, 0.5)}),
        evaluation("als", math.inf, {"rmse": (0.85,)}),
    )


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.targets, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.targets += [value for name, value in attributes if name in ("src", "href", "xlink:href")]

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def page(evaluations):
    return render_report(evaluations, title="films & <b>more</b>")


def test_the_page_needs_nothing_but_itself(page):
    reader = Reader()
    reader.feed(page)
    assert "script" not in reader.tags
    assert "link" not in reader.tags
    assert all(target.startswith("#") for target in reader.targets)
    assert reader.tags.count("figure") == 2


def test_the_page_shows_scores_labels_and_warnings(page, snapshot):
    snapshot(page)


def test_models_of_one_frame_share_axes_without_a_warning(evaluations, page):
    warning = "does not mean the same protection"
    assert warning not in page
    other = evaluation("one-bit", 1.0, {"rmse": (1.0,)}, unit=Unit.VALUE)
    assert warning in render_report((*evaluations, other), title="mixed")


def test_the_same_numbers_make_the_same_page(evaluations, page):
    assert render_report(evaluations, title="films & <b>more</b>") == page


def test_a_page_without_any_privacy_can_be_drawn(evaluations):
    assert "<svg" in render_report(evaluations[3:], title="plain")


def test_epsilons_are_ticked_as_they_were_asked_for(page):
    ticks = re.findall(r">(0\.1|1|10)</text>", page)
    assert {"0.1", "1"} <= set(ticks)


def test_a_file_is_not_overwritten_by_accident(evaluations, tmp_path):
    path = tmp_path / "report.html"
    write_report(evaluations, path, title="one")
    with refuses("file-exists", replaceable=True):
        write_report(evaluations, path, title="two")
    assert "one" in path.read_text(encoding="utf-8")
    write_report(evaluations, path, title="three", force=True)
    assert "three" in path.read_text(encoding="utf-8")
    with refuses("cannot-write"):
        write_report(evaluations, tmp_path / "nowhere" / "report.html", title="four")


def test_nothing_makes_no_report():
    with refuses("nothing-given", name="evaluations", least=1):
        render_report((), title="empty")


def test_comparing_gives_each_the_metrics_that_fit_it():
    data = popularity_skewed(n_users=80, n_items=60, mean_per_user=20, seed=0)
    turns = []
    estimators = [model_settings.estimator(name, {"epsilon": 2.0}) for name in ("biases", "popularity")]
    found = compare(estimators, data, metrics="rmse,hr@5", repeat=2, announce=lambda e: turns.append(e.name))
    assert turns == ["biases", "popularity"]
    assert [list(each.metrics) for each in found] == [["rmse", "hr@5"], ["hr@5"]]
    assert [bool(each.references) for each in found] == [True, False]
    with refuses("metric-does-not-fit", metric="rmse"):
        compare(estimators, data, metrics="rmse")
    with refuses("nothing-given", name="estimators", least=1):
        compare([], data)


def test_everybody_meets_the_same_hidden_ratings():
    data = popularity_skewed(n_users=80, n_items=60, mean_per_user=20, seed=0)
    twins = [model_settings.estimator("biases", {"epsilon": math.inf}) for _ in range(2)]
    first, second = compare(twins, data, repeat=2)
    assert first.metrics == second.metrics


def test_names_are_drawn_and_not_obeyed(evaluations):
    """A dollar sign starts a formula and an angle bracket a tag, unless somebody sees to it."""
    evil = [replace(one, model="a$\\nope{$<script>b") for one in evaluations]
    drawn = render_report(evil, title="$x^$")
    assert "<script>" not in drawn and "a$\\nope{$&lt;script&gt;b" in drawn


def test_a_name_is_what_a_reader_knows(evaluations):
    one = evaluations[1]

    def named(*settings):
        return shown_names([replace(one, model=model, parameters=dict(rest)) for model, rest in settings])

    ours, implicit, explicit = "user-factorization", {"feedback": "implicit"}, {"feedback": "explicit"}
    assert named((ours, explicit), (ours, implicit), ("als", {})) == [ours, f"{ours} (implicit)", "als"]
    # A setting that all have tells nothing apart; a number needs its setting's name.
    assert named((ours, implicit), ("als", {})) == [ours, "als"]
    numbered = {"half_life": 30.0}
    assert named((ours, explicit | numbered), (ours, explicit | {"half_life": 7.0})) == [
        f"{ours} (half_life=30.0)",
        f"{ours} (half_life=7.0)",
    ]
    assert named((ours, explicit | {"half_life": None}), (ours, implicit | numbered)) == [
        ours,
        f"{ours} (implicit, half_life=30.0)",
    ]
    # Nobody knows the defaults of a model that is not registered.
    assert named(("uf", implicit), ("uf", explicit)) == ["uf (implicit)", "uf (explicit)"]
    assert variant_names([replace(one, parameters=implicit), replace(one, parameters=explicit)]) == [
        "biases:feedback=implicit",
        "biases:feedback=explicit",
    ]


def test_the_cost_of_privacy_is_a_sentence(evaluations, snapshot):
    snapshot("\n".join([*cost_of_privacy(evaluations, "rmse"), *cost_of_privacy(evaluations, "hr@10")]))
    paired = (
        evaluation("als", math.inf, {"rmse": (0.9, 1.0)}),
        evaluation("biases", 1.0, {"rmse": (0.91, 1.0)}),
    )
    snapshot(cost_of_privacy(paired, "rmse")[0])
    apart = (paired[0], evaluation("biases", 1.0, {"rmse": (0.95, 1.05)}))
    assert "5.3% worse" in cost_of_privacy(apart, "rmse")[0]


def test_a_private_fit_that_is_ahead_is_no_gain_from_privacy(snapshot):
    """The twin is behind: it has a cost, and no sentence about chance."""
    free = evaluation("ease", math.inf, {"ndcg@10": (0.2,)})
    ahead, behind = (evaluation("biases", 1.0, {"ndcg@10": (score,)}) for score in (0.27, 0.19))
    snapshot("\n".join(cost_of_privacy([free, ahead], "ndcg@10")))
    snapshot("\n".join(cost_of_privacy([free, behind], "ndcg@10")))
    nothing = evaluation("ease", math.inf, {"ndcg@10": (0.0,)})
    assert "as good" in cost_of_privacy([nothing, replace(nothing, guarantee=behind.guarantee)], "ndcg@10")[0]


def test_chance_is_in_the_table_and_flattens_no_chart(evaluations):
    chance = {
        PREFIX + "chance": {"hr@10": Score((0.01, 0.01))},
        PREFIX + "popularity": {"hr@10": Score((0.4,))},
    }
    page = render_report([replace(evaluations[0], references=chance)], title="chance")
    assert "popularity, baseline" in page and "chance, baseline" not in page and ">chance</th>" in page


def test_each_baseline_has_its_own_dots_and_a_label(evaluations):
    beside = {PREFIX + name: {"rmse": Score((1.0,))} for name in ("global mean", "user mean", "item mean")}
    page = render_report([replace(evaluations[0], references=beside)], title="three")
    chart = page.partition("<figure>")[2].partition("</figure>")[0]
    keys = dict(re.findall(r'stroke-dasharray="([^"]+)"/></svg><span>([^<]+), baseline', chart))
    assert sorted(keys.values()) == ["global mean", "item mean", "user mean"] and len(keys) == 3
    labels = dict(re.findall(r'class="label c7" y="[^"]+" x="([^"]+)">([^<]+)</text>', chart))
    assert sorted(labels.values()) == sorted(keys.values()) and len(labels) == 3


def test_one_run_is_said_to_be_one(evaluations, page):
    assert "ran once" not in page and "ran once" in render_report(evaluations[3:], title="once")


def test_a_private_model_behind_a_baseline_is_said_to_be(evaluations, snapshot):
    lost = replace(evaluations[0], references={PREFIX + "user mean": {"rmse": Score((0.9, 0.9))}})
    snapshot(cost_of_privacy([lost], "rmse")[-1])
