"""The table of names in docs/reference.md: every name exists, and a thing has no other name elsewhere."""

import inspect
import re
from pathlib import Path

import pytest

import discreet as package
from discreet import evaluation
from discreet.cli.application import command
from discreet.cli.verbs import commands
from discreet.data.facts import Declarations
from discreet.service import recommend_app, similar
from toy import toy_interactions

ROOT = Path(__file__).parents[1]
TYPES = ROOT / "src/discreet/export/bundle/web/shared/recommender.d.ts"


def rows():
    text = (ROOT / "docs/reference.md").read_text(encoding="utf8").partition("## Names\n")[2]
    table = text.partition("\n## ")[0]
    for line in re.findall(r"^\| (.*) \|$", table, flags=re.MULTILINE)[1:]:
        yield [cell.strip().strip("`") for cell in line.replace("| |", "|  |").split("|")]


ROWS = list(rows())


def options():
    return {name for words in commands() for one in command(words).params for name in one.opts}


def known_in_python(name):
    first, _, last = name.rpartition(".")
    if first == "":
        asked = inspect.signature(package.FittedModel.recommend).parameters
        return name in asked or name in Declarations.__annotations__ or name == "purpose"
    holder = package if first == "discreet" else getattr(package, first)
    return hasattr(holder, last) or last in getattr(holder, "__annotations__", {})


def test_there_are_rows_with_five_cells():
    assert len(ROWS) > 15 and {len(row) for row in ROWS} == {5}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_name_exists(row):
    _, typed, python, http, script = row
    if typed.startswith("-"):
        assert typed in options()
    elif typed:
        assert tuple(typed.split()) in commands()
    assert not python or known_in_python(python)
    served = inspect.getsource(recommend_app) + inspect.getsource(similar)
    asked = Path(inspect.getfile(recommend_app)).parent.rglob("*.py")
    served += "".join(path.read_text(encoding="utf8") for path in asked)
    assert not http or re.search(rf"\b{http.strip('/')}\b", served)
    assert not script or re.search(rf"\b{script}\b", TYPES.read_text(encoding="utf8"))
    # Names of one thing differ by their spelling only, unless the table is about that.
    plain = {name.strip("/-").replace("_", "").lower() for name in (http, script) if name}
    assert len(plain) <= 1


def test_a_name_that_is_not_there_is_found():
    """The twin."""
    assert not known_in_python("FittedModel.neighbours") and not known_in_python("top_k")
    assert "--top-k" not in options()


def test_names_of_the_last_version_work_and_warn(tmp_path):
    guarantee = package.Popularity(epsilon=1.0).fit(toy_interactions()).guarantee
    with pytest.warns(DeprecationWarning):
        assert guarantee.frame == guarantee.definition
    with package.Ledger.open(tmp_path / "shop.ledger") as ledger, pytest.warns(DeprecationWarning):
        assert ledger.spent_by_frame("shop") == {}
    assert evaluation.bars is evaluation.baselines
