"""How many modules a reader meets: modules entered, and switches between them, while the library works.

    python benchmarks/walk.py --json

Each operation runs once to import and compile everything, and then once more under a profiler. A module is
entered when one of its functions is called; a switch is a call into another module than that of the call
before it. Only this library's modules count, and only the thread that asks. `reads` is how often a command
opens its data file or its state, `years` how often it opens the state as a database, and `fold_ins` how often
a user is folded into a model. `layout` counts what
is on disk: files, lines, docstrings, headers, own imports per module, long signatures, and single importers.
"""

from __future__ import annotations

import ast
import contextlib
import io
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import harness

import discreet
from discreet import PrivacyRandom, UserFactorization

ROOT = Path(discreet.__file__).parent


# The files that were opened, while `walked` looks.
OPENED: list[str] = []
sys.addaudithook(
    lambda event, about: OPENED.append(str(about[0])) if event in ("open", "sqlite3.connect") else None
)


def walked(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> dict[str, int]:
    """Return how many modules a piece of work enters, how often it switches, reads, and folds in.

    `before` runs before each of the two times, and is not counted.
    """
    before()
    work()
    before()
    entered: list[str] = []
    folded = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal folded
        if event == "call":
            name = frame.f_globals.get("__name__", "")
            folded += name.startswith("discreet.") and frame.f_code.co_name == "fold_in"
            if name.startswith("discreet.") and (not entered or entered[-1] != name):
                entered.append(name)

    OPENED.clear()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    counts = {"modules": len(set(entered)), "switches": max(len(entered) - 1, 0), "fold_ins": folded}
    names = [name.removeprefix("file:").partition("?")[0] for name in OPENED]
    reads = [Path(name).name for name in names if Path(name).name.startswith("walked-")]
    # A year is opened once to be read, and once for the transaction that writes it.
    years = sum("?mode=" in name and ".follow" in name for name in OPENED)
    return counts | {"reads": len(reads), "years": years}


def command(*words: object) -> None:
    """Run a command in this process, without its output."""
    from discreet.cli.application import app

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        app([str(word) for word in words], standalone_mode=False)


Works = dict[str, Callable[[], object]]


def commands(data: Any, folder: Path) -> tuple[Works, Works]:
    """Return what users type: a fit, a list for a history of four lines, and a release of a year.

    With it comes what is done before each, by its name.
    """
    import polars as pl

    table, history, model = (
        folder / "walked-ratings.csv",
        folder / "walked-history.csv",
        folder / "a.discreet",
    )
    users, items = data.users.id_at(data.rows()), data.catalog.id_at(data.items)
    columns = {"user": users.tolist(), "item": items.tolist(), "rating": data.values}
    pl.DataFrame(columns).write_csv(table)
    catalog = [data.catalog.id_at(number) for number in range(data.n_items)]
    (folder / "items.csv").write_text("item\n" + "".join(f"{item}\n" for item in catalog))
    history.write_text("item,rating\n" + "".join(f"{item},4\n" for item in catalog[:3]))
    command("fit", table, "--epsilon", 1, "--out", model, "--force")
    year = folder / "walked-year.follow"

    def start() -> None:
        # A release is drawn once, so each walk follows a year of its own.
        year.unlink(missing_ok=True)
        command("follow", "start", year, "--items", folder / "items.csv", "--epsilon", 1)

    return {
        "discreet fit": lambda: command("fit", table, "--epsilon", 1, "--out", model, "--force"),
        "discreet recommend": lambda: command("recommend", model, "--history", history, "--json"),
        "discreet follow add": lambda: command("follow", "add", year, table, "--out", model, "--force"),
    }, {"discreet follow add": start}


def operations(data: Any, folder: Path) -> tuple[Works, Works]:
    """Return what users do, each as a function without arguments, and what comes before it."""
    estimator = UserFactorization(epsilon=1.0)
    model = estimator.fit(data, random=PrivacyRandom.simulate(0))
    history = {data.catalog.id_at(number): 4.0 for number in range(5)}
    typed, before = commands(data, folder)
    works = {
        "fit": lambda: estimator.fit(data, random=PrivacyRandom.simulate(0)),
        "recommend": lambda: model.recommend(history, k=10),
        "evaluate": lambda: discreet.evaluate(estimator, data, random=PrivacyRandom.simulate(0)),
        "federated round": federated(data),
        "Dask fit": on_dask(data, estimator, folder),
        **typed,
    }
    return works, before


def federated(data: Any) -> Callable[[], object]:
    """Return a run over three parties; popularity takes one round."""
    from discreet import Popularity
    from discreet.federated import SharedNoise, protocol_for, simulate_parties

    chosen = protocol_for(Popularity(epsilon=5.0, delta=1e-5), data.facts, SharedNoise(parties=3, missing=1))
    return lambda: simulate_parties(chosen, data, 3, random=PrivacyRandom.simulate(0))


def on_dask(data: Any, estimator: Any, folder: Path) -> Callable[[], object]:
    """Return a fit on a cluster inside this process; only the driver's own work is counted."""
    import polars as pl
    from dask.distributed import Client, LocalCluster

    from discreet.sources.cluster import on_cluster
    from discreet.sources.sharding import make_shards
    from discreet.sources.shards import open_shards

    users, items = data.users.id_at(data.rows()), data.catalog.id_at(data.items)
    columns = {"user": users.tolist(), "item": items.tolist(), "rating": data.values}
    pl.DataFrame(columns).write_parquet(folder / "ratings.parquet")
    facts = data.facts
    make_shards(
        [folder / "ratings.parquet"],
        folder / "shards",
        n_shards=2,
        low=facts.low,
        high=facts.high,
        step=facts.step,
        catalog=data.catalog,
    )

    def work() -> None:
        with (
            LocalCluster(
                n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
            ) as cluster,
            Client(cluster) as client,
        ):
            source = on_cluster(open_shards(folder / "shards"), client)
            estimator.fit(source, random=PrivacyRandom.simulate(0))

    return work


def layout(root: Path) -> dict[str, float]:
    """Return the size of the package: files, lines, headers, single importers, names of two classes."""
    files = [path for path in root.rglob("*.py") if path.name != "__init__.py"]
    lines = [len(path.read_text(encoding="utf8").splitlines()) for path in files]
    importers: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    headers = docstrings = own = long = 0
    names = {".".join((root.name, *path.relative_to(root).with_suffix("").parts)): path for path in files}
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf8"))
        headers += header_lines(tree)
        docstrings += docstring_lines(tree)
        own += len(imported(tree, names.keys()))
        if "cli" not in path.parts:
            functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
            long += sum(parameters(node) >= 7 and not is_kernel(node) for node in functions)
        classes.update(node.name for node in tree.body if isinstance(node, ast.ClassDef))
        importers.update(imported(tree, names.keys()))
    return {
        "files": len(files),
        "lines": sum(lines),
        "median lines": statistics.median(lines),
        "below 50 lines": sum(one < 50 for one in lines),
        "above 400 lines": sum(one > 400 for one in lines),
        "share of headers": round(headers / sum(lines), 3),
        "share of docstrings": round(docstrings / sum(lines), 3),
        "own imports per module": round(own / len(files), 2),
        "functions with 7 or more parameters, command line and array kernels aside": long,
        "single importers": sum(importers[name] == 1 for name in names),
        "class names used twice": sum(
            count > 1 for name, count in classes.items() if not name.startswith("_")
        ),
    }


def header_lines(tree: ast.Module) -> int:
    """Return the lines of imports and of the module's docstring."""
    first = tree.body[:1]
    nodes: list[ast.stmt] = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if first and isinstance(first[0], ast.Expr) and isinstance(first[0].value, ast.Constant):
        nodes.append(first[0])
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)


def docstring_lines(tree: ast.Module) -> int:
    """Return the lines of all docstrings."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = (
        node for node in ast.walk(tree) if isinstance(node, kinds) and ast.get_docstring(node) is not None
    )
    return sum((node.body[0].end_lineno or 0) - node.body[0].lineno + 1 for node in found)


def parameters(node: ast.FunctionDef) -> int:
    """Return the number of parameters, the own object aside."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return sum(name not in ("self", "cls") for name in names)


def is_kernel(node: ast.FunctionDef) -> bool:
    """Return whether a function is compiled: such loops take arrays one by one."""
    return any(
        ast.unparse(one) in ("compiled", "inner", "strict", "strict_inner") for one in node.decorator_list
    )


def imported(tree: ast.Module, names: Any) -> set[str]:
    """Return the modules of the package that a module imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{one.name}" for one in node.names}
            found |= {name for name in names if name == node.module or name in parts}
    return found


def main() -> None:
    options = harness.options(
        __doc__,
        toy={"only": "recommend,federated round"},
        data="discreet-demo",
        only=harness.option(default="", help="operations separated by commas; all by default"),
    )
    with tempfile.TemporaryDirectory() as folder:
        works, before = operations(harness.ratings(options.data, toy=options.toy), Path(folder))
        names = options.only.split(",") if options.only else list(works)
        walks = {name: walked(works[name], before.get(name, lambda: None)) for name in names}
        results = {"walk": walks, "layout": layout(ROOT)}
    harness.tell(results, options)


if __name__ == "__main__":
    main()
