"""Shell commands of the pages run: in a temporary folder, on small generated files, or a reason says why not.

The small file stands for large data sets. A command must end without an error and show what its kind shows;
numbers are not compared.
"""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shell_blocks
from test_docs import PAGES, ROOT

# The first pattern that is found in a command says why it is not run.
NOT_RUN = {
    r"^make |^pip |-m venv": "installs packages or runs the tests",
    r"^(\w+=\S+ )?dask |dask://|/shared/": "needs several machines",
    r"^python -m http.server": "serves until it is stopped; tests/service does that",
    r"--on (duckdb|spark):": "needs a database or Spark; tests/shards/test_engines.py has both",
    r"--to onnx": "needs the extra onnx; tests/export/test_onnx_graph.py runs it",
    r"--to (faiss|hnswlib)": "needs the extra vectors; tests/export/test_items.py runs it",
    r"^aws |s3://": "needs an object store",
    r"^docker|^podman|^nginx|^mkdocs|^git |^curl": "needs another program",
    r"^python benchmarks/|^python docs/|^python papers/": "takes minutes; test_scripts.py runs a toy",
    r"^discreet papers reproduce": "takes minutes; test_reproduce.py runs a part",
    r"^discreet (serve|campaign (fit|invite|close))": "needs a service; tests/service runs it",
    r"^discreet federation (keeper|party|run)": "needs other parties; see tests/federated",
    r"^discreet model export .*--url": "needs a running store; tests/export/test_vector_stores.py starts one",
    r"^discreet model choose": "asks questions at a terminal; test_choose.py answers them",
    r"^discreet model audit --all|--questions|--full": "takes minutes; tests/audit runs parts",
    r"^discreet model audit (?!biases$)": "takes half a minute; tests/cli/test_audit.py runs it smaller",
    r"^discreet model audit biases --": "takes half a minute; tests/cli/test_audit.py runs it smaller",
    r"top-shelf|mine\.discreet|hit-first": "needs the package of that page; test_adding_a_model.py runs it",
    r"given:u1": "needs the original files of MovieLens 100K",
}
LARGE = ("movielens-1m", "movielens-100k")
# What a command shows, loosely: numbers differ with the data and the noise.
SHOWN = {
    "discreet model label": "privacy facts|^written to",
    "discreet fit": "ε|epsilon",
    "discreet budget": "epsilon|ε|spent",
    "discreet budget plan": "epsilon",
    "discreet recommend": "item|lists",
    "discreet evaluate": "rmse|hr@10|accuracy",
    "discreet model audit": "not refuted",
}
# Enough to sample 99 items that somebody has not rated.
ITEMS = 130
FOUND = [
    command for page in PAGES if page.name != "papers.md" for command in shell_blocks.commands(page, ROOT)
]


def reason(command):
    """Return why a command is not run; None if it is."""
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, command.text)), None)


def runnable(page):
    return [command for command in FOUND if command.page == page and reason(command) is None]


RUN = sorted({command.page for command in FOUND if reason(command) is None})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with the files that pages name."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    users = np.repeat(np.arange(300), 20)
    items = np.concatenate([draw.choice(ITEMS, 20, replace=False) for _ in range(300)])
    table = pl.DataFrame({"userId": users, "movieId": items, "rating": draw.integers(1, 6, users.size)})
    times = 1_700_000_000 + draw.integers(0, 10_000_000, users.size)
    timed = table.with_columns(timestamp=pl.Series(times))
    for name in ("ratings.csv", "users.csv"):
        table.write_csv(name)
    # Clicks have no ratings: a command that needs --implicit fails without it.
    for name in ("clicks.csv", "january.csv", "february.csv", "march.csv", "joined_2027.csv"):
        table.select("userId", "movieId").write_csv(name)
    table.head(20).write_csv("me.csv")
    table.filter(pl.col("userId") < 150).write_parquet("ratings-1.parquet")
    table.filter(pl.col("userId") >= 150).write_parquet("ratings-2.parquet")
    for name in ("week.parquet", "week-1.parquet"):
        timed.write_parquet(name)
    timed.select("userId", "movieId", "timestamp").write_ndjson("clicks.jsonl")
    ids = "".join(f"{item}\n" for item in range(ITEMS))
    parties = [f"{party}-items.txt" for party in ("north", "east", "south")]
    for name in ("titles.txt", "films.txt", "items.txt", "items.csv", *parties):
        Path(name).write_text(ids)
    Path("films.csv").write_text("id,title\n" + "".join(f"{item},Film {item}\n" for item in range(ITEMS)))
    Path("forgotten.txt").write_text("7\n")
    return tmp_path


def words(text, folder):
    """Return the words of a command as a shell would, with small files in place of large data sets."""
    found = []
    for word in shlex.split(text):
        word = "ratings.csv" if word in LARGE else word
        found += sorted(path.name for path in folder.glob(word)) if "*" in word else [word]
    return found


# `make test` runs those of the README, and `make test-scripts` those of all other pages.
@pytest.mark.thorough
@pytest.mark.parametrize(
    "page", [one if one == "README.md" else pytest.param(one, marks=pytest.mark.scripts) for one in RUN]
)
def test_commands_of_a_page_run_in_order(page, folder, discreet):
    for command in runnable(page):
        name, *arguments = words(command.text, folder)
        assert name == "discreet", f"{page} shows {command.text!r}: run it here, or say in NOT_RUN why not."
        code, out, error = discreet(*arguments)
        assert code == 0, f"{command.text}\n{error}"
        shown = " ".join(f"{out} {error}".split())
        for start, pattern in SHOWN.items():
            if command.text.startswith(start):
                assert re.search(pattern, shown.lower()), f"{command.text}\n{shown}"


def test_most_commands_run_and_every_reason_is_used():
    run = sum(reason(command) is None for command in FOUND)
    print(f"{run} of {len(FOUND)} shell commands run.")
    assert run >= 0.4 * len(FOUND) > 8


def test_commands_are_found_and_parted_from_comments(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "    discreet fit a.csv \\\n        --epsilon 1    # a comment\n\n```\ndiscreet model label m\n```\n"
        "```python\ndiscreet = 1\n```\n\n    discreet models   lists them\n"
    )
    found = [command.text for command in shell_blocks.commands(page, tmp_path)]
    assert [text.split()[1:] for text in sorted(found)] == [
        ["fit", "a.csv", "--epsilon", "1"],
        ["model", "label", "m"],
        ["models"],
    ]
