"""A federation of real processes on this machine: keeper, parties with Flower's SuperNodes, coordinator."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import discreet
from ports import free_port

_HERE = Path(__file__).resolve().parent.parent
NAMES = ("north", "east", "south")


def programs():
    """Return the folder of Flower's programs, or skip."""
    for folder in (os.environ.get("DISCREET_FLOWER"), _HERE / ".venv-flower" / "bin"):
        if folder and (Path(folder) / "flower-superlink").exists():
            return Path(folder)
    pytest.skip("Flower is not installed; `make flower` puts it into .venv-flower.")


class Federation:
    """Start members as processes and end all of them."""

    def __init__(self, data, *options):
        self.data, self.flower = data, programs()
        self.root = Path(tempfile.mkdtemp(prefix="fed-"))
        self.folder = self.root / "f"
        self.processes = {}
        self._write_data()
        (self.root / "items.txt").write_text("\n".join(map(str, data.catalog.ids)))
        ports = [free_port() for _ in range(2)]
        self.call(
            "federation", "init", self.folder, "--parties", ",".join(NAMES),
            "--items", self.root / "items.txt", "--coordinator", f"127.0.0.1:{ports[0]}",
            "--keeper", f"127.0.0.1:{ports[1]}", *options,
        )  # fmt: skip
        self.address = ("127.0.0.1", ports[0])

    def _write_data(self):
        owner = np.arange(self.data.n_users) % len(NAMES)
        rows = self.data.rows()
        for number, name in enumerate(NAMES):
            mine = owner[rows] == number
            columns = (
                self.data.users.id_at(rows[mine]),
                self.data.catalog.id_at(self.data.items[mine]),
                self.data.values[mine],
            )
            table = pl.DataFrame(dict(zip(("user", "item", "rating"), columns, strict=True)))
            table.write_parquet(self.root / f"{name}.parquet")

    def command(self, *arguments):
        return [sys.executable, "-m", "discreet", *map(str, arguments)]

    def environment(self):
        return {**os.environ, "DISCREET_FLOWER": str(self.flower), "NUMBA_NUM_THREADS": "1"}

    def call(self, *arguments):
        done = subprocess.run(
            self.command(*arguments), env=self.environment(), capture_output=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr.decode()

    def start(self, name, *arguments):
        with (self.root / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                self.command(*arguments), env=self.environment(), stdout=subprocess.DEVNULL, stderr=log
            )

    def start_keeper(self):
        self.start("keeper", "keeper", "serve", self.folder / "keeper")

    def start_party(self, name):
        ledger = self.root / f"{name}.ledger"
        data = self.root / f"{name}.parquet"
        self.start(
            name,
            "party",
            "serve",
            self.folder / name,
            "--data",
            data,
            "--name",
            "shop",
            "--ledger",
            ledger,
            "--yes",
        )

    def run(self, *options, watch=lambda line: None):
        """Be the coordinator; return the model and what was printed. `watch` sees lines and may end it."""
        assert wait_until(self.all_answer), self.logs()
        out = self.root / "model"
        self.processes["coordinator"] = process = subprocess.Popen(
            self.command("federation", "run", self.folder / "coordinator", "--out", out, "--json", *options),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        said = []
        for line in process.stderr:
            said.append(line)
            if watch(line) == "kill":
                process.kill()
                process.communicate()
                return None, said
        results, _ = process.communicate()
        assert process.returncode == 0, "".join(said)
        return discreet.load(out), json.loads(results)

    def all_answer(self):
        """Tell whether keeper and parties are there; one that ended will not be."""
        members = [name for name in ("keeper", *NAMES) if name in self.processes]
        return all("answers at" in self.log(name) for name in members)

    def log(self, name):
        path = self.root / f"{name}.log"
        return path.read_text() if path.exists() else "answers at"

    def logs(self):
        return {name: self.log(name) for name in NAMES}

    def pooled(self, model):
        """Return the data of all parties in the order of the model's catalog."""
        return self.data.select_items(self.data.catalog.index_of(model.catalog.ids))

    def kill(self, name):
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def close(self):
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def wait_until(is_so, seconds=300.0):
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.2)
    return False
