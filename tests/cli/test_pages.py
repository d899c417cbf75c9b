"""Pages for people, in a real browser: nothing is cut, nothing overflows, and everybody can read them."""

import math
import re
from dataclasses import replace

import pytest

from discreet.evaluation import Score, write_report
from discreet.evaluation.scoring import PREFIX
from discreet.report.charts import Axis, ChartLine, Point, line_chart, ticks_between
from discreet.report.pages import Html, element, facts_table, is_page, page, table
from evaluation.test_report import evaluation
from service.browser import browsing, needs_browser

SIX = (
    "user-factorization",
    "popularity",
    "biases",
    "frank-wolfe",
    "slope-one",
    "a-model-with-quite-a-long-name",
)


def six_models():
    """Return a comparison of six models, one in two variants, at six epsilons and without privacy."""
    found = []
    for number, model in enumerate((SIX[0], *SIX)):
        for epsilon in (0.1, 0.5, 1.0, 2.0, 10.0, math.inf):
            rmse, ndcg = 0.9 + 0.02 * number + 0.1 / (1 + epsilon), 0.2 - 0.02 * number
            one = evaluation(model, epsilon, {"rmse": (rmse, rmse + 0.01), "ndcg@10": (ndcg, ndcg + 0.02)})
            feedback = {"feedback": "implicit" if number else "explicit"} if model == SIX[0] else {}
            found.append(replace(one, parameters={"epsilon": epsilon, **feedback}))
    mean = {PREFIX + "user mean": {"rmse": Score((1.0, 1.0))}}
    return [replace(found[0], references=mean), *found[1:]]


@pytest.fixture
def pages(discreet, ratings, tmp_path):
    """Return one page of every kind, made as a user would."""
    model, ledger, state = (tmp_path / name for name in ("m.discreet", "l.ledger", "shop.follow"))
    names = ("report", "label", "budget", "audit", "follow", "synthetic")
    kinds = {name: tmp_path / f"{name}.html" for name in names}
    write_report(six_models(), kinds["report"], title="Models on ratings.csv")
    fit = ("fit", ratings, "--model", "biases", "--out", model, "--ledger", ledger, "--name", "shop")
    assert discreet("budget", ledger, "--name", "shop", "--epsilon", "3")[0] == 0
    assert discreet(*fit, "--epsilon", "1")[0] == 0
    assert discreet("budget", ledger, "--html", kinds["budget"])[0] == 0
    assert discreet("label", model, "--html", kinds["label"])[0] == 0
    assert discreet("audit", "popularity", "--page", kinds["audit"])[0] == 0
    drawn = tmp_path / "s.discreet"
    assert discreet("fit", ratings, "--for-synthesis", "--epsilon", "1", "--out", drawn)[0] == 0
    made = ("synthesize", drawn, "--users", 50, "--out", tmp_path / "s.csv", "--compare-with", ratings)
    assert discreet(*made, "--page", kinds["synthetic"])[0] == 0
    items = tmp_path / "items.csv"
    items.write_text("a\nb\n")
    year = ("--scale", "1,5,1", "--epsilon", "2", "--delta", "1e-6", "--releases", "52", "--half-life", "7d")
    assert (
        discreet("follow", "start", state, "--items", items, *year, "--ledger", tmp_path / "y.ledger")[0] == 0
    )
    assert discreet("follow", "show", state, "--html", kinds["follow"])[0] == 0
    return kinds


# Legends and text in charts that reach out of their figure.
CUT = """() => [...document.querySelectorAll('figure text, figure .legend span')].filter(one => {
  const mine = one.getBoundingClientRect(), frame = one.closest('figure').getBoundingClientRect();
  return mine.left < frame.left || mine.right > frame.right || mine.bottom > frame.bottom;
}).map(one => one.textContent)"""


@needs_browser
@pytest.mark.systems
@pytest.mark.parametrize(
    "looks",
    [
        [(1280, "light"), (390, "dark")],
        pytest.param([(1280, "dark"), (390, "light")], marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_every_page_fits_and_breaks_no_rule_of_accessibility(pages, looks, tmp_path):
    from axe_playwright_python.sync_playwright import Axe

    long = line_chart([ChartLine(name="x", level=1.0)], title="t", x=Axis(label="w" * 200), y=Axis(label="y"))
    cut = tmp_path / "cut.html"
    cut.write_text(page("cut", [long], kind="test"), encoding="utf8")
    with browsing() as profile:
        tab = profile.context.new_page()
        for name, path in pages.items():
            for width, scheme in looks:
                tab.set_viewport_size({"width": width, "height": 900})
                tab.emulate_media(color_scheme=scheme)
                tab.goto(path.as_uri())
                found = Axe().run(tab)
                assert found.violations_count == 0, (name, width, scheme, found.generate_report())
                assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), (name, width)
                assert tab.evaluate(CUT) == [], (name, width)
        # The twin: what is cut is found.
        tab.goto(cut.as_uri())
        assert tab.evaluate(CUT) == ["w" * 200]


def test_all_charts_have_one_size_and_a_legend_names_every_line(tmp_path):
    write_report(six_models(), tmp_path / "report.html", title="Six")
    text = (tmp_path / "report.html").read_text(encoding="utf8")
    sizes = re.findall(r'<svg viewBox="([^"]+)" role="img"', text)
    assert len(sizes) == 2 and len(set(sizes)) == 1 and text.count("<figure>") == 2
    for chart in text.split("<figure>")[1:]:
        legend = chart.partition('class="legend"')[2].partition("</ul>")[0]
        assert all(f"<span>{name}</span>" in legend for name in (f"{SIX[0]} (implicit)", *SIX))


def test_text_from_files_is_shown_and_not_obeyed():
    evil = "<script>x</script>\"'&"
    axis = Axis(label=evil)
    shown = [
        element("p", evil),
        facts_table([(evil, evil)], evil),
        table((evil,), [(evil,)], evil),
        line_chart([ChartLine(name=evil, points=(Point(1, 1, said=evil),))], title=evil, x=axis, y=axis),
    ]
    whole = page(evil, shown, kind="test")
    assert "<script" not in whole and "&lt;script&gt;" in whole
    assert element("p", Html("<b>ours</b>")) == "<p><b>ours</b></p>"


def test_a_page_knows_its_kind(tmp_path):
    path = tmp_path / "a.html"
    path.write_text(page("a", [], kind="label"), encoding="utf8")
    assert is_page(path, kind="label") and not is_page(path, kind="audit")
    assert not is_page(tmp_path / "none.html", kind="label")


@pytest.mark.parametrize(
    ("lines", "ticks"),
    [
        ([], ()),
        ([ChartLine(name="flat", points=(Point(1, 0),))], ()),
        (
            [ChartLine(name="huge", points=(Point(1e-300, 1e300), Point(1e300, -1e300)))],
            ((1.0, "1"), (1.0, "1")),
        ),
        ([ChartLine(name="level", level=5.0)], ((0.1, "0.1"), (1.0, "1"))),
    ],
)
def test_anything_can_be_drawn(lines, ticks):
    drawn = line_chart(lines, title="t", x=Axis(label="x", logarithmic=True, ticks=ticks), y=Axis(label="y"))
    assert "nan" not in drawn and "inf" not in drawn


def test_ticks_are_round_and_within():
    for low, high in ((0.0, 1.0), (-3.0, 17.0), (0.831, 0.832), (1e-9, 1e9)):
        ticks = ticks_between(low, high)
        assert 3 <= len(ticks) <= 8 and low - 1e-6 <= ticks[0] and ticks[-1] <= high
