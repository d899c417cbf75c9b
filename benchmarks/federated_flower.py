"""Measure what Flower costs: seconds a round and bytes on the wire, beside an empty message of its own.

Keeper, parties with their SuperNodes, SuperLink and coordinator run as processes on this machine, with TLS
and known keys, and learn `user-factorization` from MovieLens 1M split by people. `beyond_empty` is what a
round takes longer than an empty message through the same transport to as many parties, the peer of this
measurement. Needs Flower (`make flower`, or DISCREET_FLOWER); says so and ends where it is absent.

    python benchmarks/federated_flower.py --json --parties 3
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import harness
import numpy as np
import polars as pl

import discreet
from discreet.core.checks import FileError
from discreet.core.randomness import PrivacyRandom
from discreet.data.splits import Split, leave_one_out
from discreet.evaluation.scoring import measure
from discreet.federated.flower.processes import VARIABLE, Flower
from discreet.federated.flower.transport import FlowerTransport
from discreet.federated.identity.agreement import COORDINATOR, Agreement
from discreet.federated.serving.party import LocalServer
from discreet.models.user_factorization.estimator import UserFactorization

METRIC = "hr@10:99"
EMPTY_MESSAGES = 3
# Where `make flower` puts it.
MADE = Path(__file__).resolve().parents[1] / ".venv-flower" / "bin"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def called(*arguments) -> list[str]:
    return [sys.executable, "-m", "discreet", *map(str, arguments)]


def found(root: Path, split: Split, names: list[str], *options: object) -> Path:
    """Write every party's users and the federation's folders."""
    train, rows = split.train, split.train.rows()
    for number, name in enumerate(names):
        mine = rows % len(names) == number
        users, items = train.users.id_at(rows[mine]), train.catalog.id_at(train.items[mine])
        # Titles have commas: quotes are polars' to write.
        table = pl.DataFrame({"user": users.tolist(), "item": items.tolist(), "rating": 1})
        table.write_csv(root / f"{name}.csv")
    (root / "items.txt").write_text("\n".join(map(str, train.catalog.ids)))
    given = ["--parties", ",".join(names), "--items", root / "items.txt"]
    given += ["--implicit", "--missing", max(1, len(names) // 5), *options]
    given += ["--coordinator", f"127.0.0.1:{free_port()}", "--keeper", f"127.0.0.1:{free_port()}"]
    subprocess.run(called("federation", "init", root / "f", *given), check=True, stdout=subprocess.DEVNULL)
    return root / "f"


def empty_message(folder: Path, names: list[str]) -> list[float]:
    """Return the seconds that empty messages to all parties take."""
    agreement = Agreement.read(folder / COORDINATOR)
    address, flower = agreement.address(COORDINATOR), Flower(folder / COORDINATOR)
    processes, servers, taken = [flower.start_superlink(address)], [], []
    try:
        with FlowerTransport(folder / "empty.socket") as transport:
            keys = {name: agreement.keys[name] for name in names}
            transport.nodes = flower.start_relay(keys, folder / "empty.socket")
            transport.wait_for_relay(300.0)
            for name in names:
                servers.append(LocalServer(folder / name / "empty.socket", lambda raw: raw))
                threading.Thread(target=servers[-1].run, daemon=True).start()
                processes.append(Flower(folder / name).start_supernode(address, servers[-1].path, 60.0))
            # The first one waits for nodes to come; it does not count.
            for _ in range(EMPTY_MESSAGES + 1):
                start = time.perf_counter()
                answers = transport.ask(b"", names, 900.0)
                counted = {name for name, _ in itertools.islice(answers, len(names))}
                assert counted == set(names)
                taken.append(time.perf_counter() - start)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)
        for server in servers:
            server.close()
    return taken[1:]


def started(root: Path, name: str, *arguments) -> subprocess.Popen[bytes]:
    """Start a member; what it says goes to a file."""
    with (root / f"{name}.log").open("wb") as log:
        return subprocess.Popen(called(*arguments), stdout=subprocess.DEVNULL, stderr=log)


def run(root: Path, folder: Path, names: list[str]) -> tuple[list[dict[str, float]], Path]:
    """Run the federation; return each round's seconds and bytes, and the model's file."""
    members = [started(root, "keeper", "keeper", "serve", folder / "keeper")]
    for name in names:
        given = ["--data", root / f"{name}.csv", "--ledger", root / f"{name}.ledger", "--yes"]
        members.append(started(root, name, "party", "serve", folder / name, *given))
    out = root / "model"
    command = called("federation", "run", folder / COORDINATOR, "--out", out, "--seconds", 1800, "--json")
    rounds: list[dict[str, float]] = []
    said = []
    try:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            said.append(line)
            size = int(re.sub(r"\D", "", re.search(r"([\d,]+) bytes", line)[1])) if "bytes" in line else 0
            if line.startswith("Question"):
                rounds.append(
                    {"question_bytes": size * len(names), "answer_bytes": 0, "began": time.perf_counter()}
                )
            elif rounds and size:
                rounds[-1]["answer_bytes"] += size
                rounds[-1]["seconds"] = time.perf_counter() - rounds[-1]["began"]
        process.wait()
    finally:
        for member in members:
            member.terminate()
        for member in members:
            member.wait(60)
    if process.returncode:
        logs = "".join(f"{name}:\n{(root / f'{name}.log').read_text()[-500:]}\n" for name in names)
        sys.exit("The federation failed:\n" + "".join(said[-20:]) + logs)
    return [{key: value for key, value in entry.items() if key != "began"} for entry in rounds], out


def main() -> None:
    arguments = harness.options(__doc__, parties=3, epsilon=5.0, delta=1e-5)
    split = leave_one_out(harness.ratings("movielens-1m", toy=arguments.toy))
    names = [f"party-{number}" for number in range(arguments.parties)]
    with tempfile.TemporaryDirectory(prefix="fed-") as place:
        result = measured(Path(place), split, names, arguments)
    harness.tell(result, arguments)


def measured(root: Path, split: Split, names: list[str], arguments: argparse.Namespace) -> dict[str, object]:
    """Return what a federation costs and reaches; where Flower is absent, the sentence that says so."""
    if VARIABLE not in os.environ and MADE.exists():
        os.environ[VARIABLE] = str(MADE)
    try:
        Flower(root)
    except FileError as error:
        return {"skipped": str(error)}
    folder = found(root, split, names, "--epsilon", arguments.epsilon, "--delta", arguments.delta)
    empty = empty_message(folder, names)
    rounds, out = run(root, folder, names)
    alone = UserFactorization(epsilon=arguments.epsilon, delta=arguments.delta, feedback="implicit")
    central = alone.fit(split.train, random=PrivacyRandom.simulate(0))
    order = split.train.catalog.index_of(discreet.load(out).catalog.ids)
    scores = [
        measure(model, train, test, METRIC)[METRIC]
        for model, train, test in (
            (central, split.train, split.test),
            (discreet.load(out), split.train.select_items(order), split.test.select_items(order)),
        )
    ]
    # The first round waits for nodes to come.
    later = [entry["seconds"] for entry in rounds[1:]]
    return {
        "parties": arguments.parties,
        "epsilon": arguments.epsilon,
        "empty_message_seconds": empty,
        "rounds": rounds,
        "beyond_empty": float(np.median(later) - np.median(empty)),
        "ratio_to_empty": float(np.median(later) / np.median(empty)),
        "bytes": sum(entry["question_bytes"] + entry["answer_bytes"] for entry in rounds),
        "hr@10": {"one_holder": scores[0], "over_flower": scores[1]},
    }


if __name__ == "__main__":
    main()
