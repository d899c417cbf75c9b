"""What all benchmarks share: options, a toy size, data, a process of their own, one table or JSON object.

Every benchmark takes two options. `--json` prints one JSON object on stdout and nothing else. `--toy` runs
the same code on next to nothing, in this process, and leaves committed results alone; its numbers mean
nothing. A test runs every benchmark with both.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

HERE = Path(__file__).resolve().parent
# This folder has files that are called as packages are (service); the packages come first.
sys.path[:] = [*(entry for entry in sys.path if Path(entry or ".").resolve() != HERE), str(HERE)]

# People, items and mean ratings a person of what is generated where a data set is not on this machine.
SHAPES = {"movielens-100k": (943, 600, 60), "movielens-1m": (6_000, 2_400, 166)}
TOY_SHAPE = (40, 500, 15)


Option = dict[str, Any]


def option(**settings: Any) -> Option:
    """Return an option with settings of `argparse` beyond a default."""
    return settings


def flag(meaning: str = "") -> Option:
    """Return an option that is given or not."""
    return {"action": "store_true", "help": meaning}


def options(
    about: str | None,
    *,
    toy: Mapping[str, Any] = MappingProxyType({}),
    argv: Sequence[str] | None = None,
    **known: object,
) -> argparse.Namespace:
    """Parse the options of a script: its own by name, each a default or an `option`, `--json`, and `--toy`.

    At toy size the defaults are those in `toy`.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    for name, one in known.items():
        settings = one if isinstance(one, dict) else {"type": type(one), "default": one}
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--toy", action="store_true", help="run on next to nothing, to see that it runs")
    if parser.parse_args(argv).toy:
        parser.set_defaults(**toy)
    return parser.parse_args(argv)


def ratings(name: str, *, toy: bool = False):
    """Return a data set; of one with a shape above that is not on this machine, generated ratings like it."""
    from discreet.data.datasets import catalog
    from discreet.data.datasets.synthetic import popularity_skewed

    if not toy and (name not in SHAPES or catalog.find(name) is not None):
        return catalog.load(name)
    people, items, each = TOY_SHAPE if toy else SHAPES[name]
    return popularity_skewed(
        n_users=people, n_items=items, mean_per_user=each, name="toy" if toy else f"generated, like {name}"
    )


def use_threads(count: int, *, toy: bool) -> None:
    """Say how many threads libraries may start, before they are imported; a toy takes them as they are."""
    if not toy:
        os.environ |= {
            "NUMBA_NUM_THREADS": str(count),
            "POLARS_MAX_THREADS": str(count),
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }


def in_own_process(job: Callable[..., Any], *arguments: object, toy: bool = False) -> Any:
    """Return a job's answer from a fresh process, whose memory and caches are its own; a toy stays here."""
    if toy:
        return job(*arguments)
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(sender, job, *arguments))
    process.start()
    sender.close()
    try:
        result = receiver.recv()
    except EOFError:
        process.join()
        sys.exit(f"{job.__name__} ended without an answer, exit code {process.exitcode}.")
    process.join()
    return result


def _answer(sender: Any, job: Callable[..., Any], *arguments: object) -> None:
    sender.send(job(*arguments))


def tell(result: dict[str, Any], asked: argparse.Namespace) -> None:
    """Print the result as one JSON object, or as a table."""
    if asked.json:
        print(json.dumps(result))
        return
    for line in lines(result):
        print(line)


def say(place: str, found: dict[str, Any]) -> None:
    """Show a part of a result as soon as it is measured."""
    for line in lines({place: found}):
        print(line, file=sys.stderr, flush=True)


def lines(found: Any, place: str = "") -> Iterator[str]:
    """Yield a row of the table for each record of a result: its place in the result, and its numbers."""
    entries = found.items() if isinstance(found, dict) else enumerate(found, 1)
    records = {name: one for name, one in entries if _is_record(one)}
    if isinstance(found, dict) and (plain := {k: v for k, v in found.items() if k not in records}):
        yield f"{place or 'all':40} " + "  ".join(f"{name} {_short(value)}" for name, value in plain.items())
    for name, one in records.items():
        yield from lines(one, f"{place} {name}".strip())


def _is_record(value: Any) -> bool:
    is_list = isinstance(value, list | tuple) and bool(value) and isinstance(value[0], dict)
    return is_list or (isinstance(value, dict) and bool(value))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
