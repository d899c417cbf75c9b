"""Start Flower's processes and give them orders; Flower may live in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, final

from discreet.federated.errors import AddressTaken, FlowerFailed, FlowerMissing
from discreet.federated.identity.keys import AUTHORITY, CERTIFICATE, KEY, NODE_KEY, require_private

_HERE = Path(__file__).resolve().parent
#: The environment variable with the folder of Flower's programs, if it is not installed with discreet.
VARIABLE = "DISCREET_FLOWER"
# A busy machine needs minutes to load Flower; a program that ended is noticed at once.
START_SECONDS, _STOP_SECONDS = 300.0, 20.0
LATE = f"was not ready within {START_SECONDS:.0f} seconds"
_CONNECTION = "federation"
_LONGEST_REASON = 300
# Where programs, homes and temporary files are, and the language; no other variable reaches Flower.
_PASSED_ON = frozenset(
    ["PATH", "HOME", "TMPDIR", "TEMP", "TMP", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT"]
)


@final
class Flower:
    """Start Flower's programs, and keep their files in a folder of the run.

    Parameters:
        programs: The folder of Flower's `python` and `flwr`; by default that of `DISCREET_FLOWER`, or of the
            Python that runs this.
        folder: A member's folder, with its keys and certificates.
    """

    def __init__(self, folder: Path, programs: Path | None = None) -> None:
        self._folder, self._home = folder.resolve(), folder.resolve() / "flower"
        here = os.environ.get(VARIABLE) or Path(sys.executable).parent
        self._programs = Path(programs or here).absolute()
        if not (self._programs / "flower-superlink").exists():
            raise FlowerMissing(folder=self._programs, variable=VARIABLE)
        self._home.mkdir(mode=0o700, exist_ok=True)

    def start_superlink(self, address: tuple[str, int]) -> subprocess.Popen[bytes]:
        """Start the SuperLink, with TLS and for known nodes only, and wait until it answers."""
        require_private(self._folder / KEY)
        if answers_at(address):
            raise AddressTaken(address=f"{address[0]}:{address[1]}")
        options = ["--host", address[0], "--port", str(address[1])]
        options += ["--ssl-certfile", self._own(CERTIFICATE), "--ssl-keyfile", self._own(KEY)]
        options += ["--ssl-ca-certfile", self._own(AUTHORITY), "--enable-supernode-auth"]
        options += ["--disable-runtime-dependency-installation"]
        process = self._start("superlink", options)
        end = time.monotonic() + START_SECONDS
        while not answers_at(address):
            if process.poll() is not None or time.monotonic() > end:
                how = LATE if process.poll() is None else "ended"
                process.kill()
                raise self.failed("SuperLink", how)
            time.sleep(0.1)
        connection = {
            "address": f"{_reached(address[0])}:{address[1]}",
            "root-certificates": self._own(AUTHORITY),
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in connection.items()]
        text = "\n".join([f'[superlink]\ndefault = "{_CONNECTION}"', f"[superlink.{_CONNECTION}]", *lines])
        (self._home / "config.toml").write_text(text + "\n")
        return process

    def start_supernode(
        self, address: tuple[str, int], daemon: Path, seconds: float
    ) -> subprocess.Popen[bytes]:
        """Start a party's SuperNode, which forwards questions to the daemon's socket."""
        require_private(self._folder / KEY)
        require_private(self._folder / NODE_KEY)
        options = ["--superlink", f"{address[0]}:{address[1]}", "--root-certificates", self._own(AUTHORITY)]
        options += ["--auth-supernode-private-key", self._own(NODE_KEY)]
        options += ["--ssl-certfile", self._own(CERTIFICATE), "--ssl-keyfile", self._own(KEY)]
        options += ["--ssl-ca-certfile", self._own(AUTHORITY), "--port", str(_free_port())]
        options += ["--node-config", f"socket={json.dumps(str(daemon))} seconds={seconds:.1f}"]
        return self._start("supernode", options)

    def start_relay(self, keys: Mapping[str, str], path: Path, app: Path = _HERE / "app") -> dict[str, str]:
        """Register nodes with these public keys, and start the app that connects to a socket.

        Returns the number that Flower gives each node, by name.
        """
        orders = []
        for name, key in keys.items():
            file = self._home / f"{name}.pub"
            file.write_text(key + "\n")
            orders.append(["supernode", "register", str(file), _CONNECTION, "--name", name])
        settings = f"socket={json.dumps(str(path))}"
        orders.append(["run", str(app), _CONNECTION, "--run-config", settings])
        *registered, _ = self._orders(orders)
        return {name: str(answer["node-id"]) for name, answer in zip(keys, registered, strict=True)}

    def _orders(self, orders: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """Run commands with Flower's command line and return the answer to each."""
        command = [str(self._programs / "python"), str(_HERE / "launch.py"), "orders"]
        commands = json.dumps([[*order, "--format", "json"] for order in orders])
        with self._log("flwr").open("ab") as log:
            try:
                done = subprocess.run(
                    command,
                    input=commands.encode(),
                    env=self._environment(),
                    stdout=subprocess.PIPE,
                    stderr=log,
                    timeout=START_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise self.failed("command line", LATE, "flwr") from error
            log.write(done.stdout)
        answers = _documents(done.stdout.decode(errors="replace"))
        if len(answers) < len(orders) or not all(answer.get("success") for answer in answers):
            stated = " ".join(str(answer.get("error-message", "")) for answer in answers)
            raise self.failed("command line", "failed", "flwr", " ".join(stated.split())[:_LONGEST_REASON])
        return answers

    def failed(self, what: str, how: str, log: str = "superlink", reason: str | None = None) -> FlowerFailed:
        """Return the error of one of Flower's programs, with the last error in its log if none is given."""
        last = reason or last_error(self._log(log))
        return FlowerFailed(what=what, how=how, log=self._log(log), reason=last)

    def relay_failed(self, how: str) -> FlowerFailed:
        """Return the error of the relay, with what Flower states about a run that it ended."""
        with contextlib.suppress(FlowerFailed):
            for run in self._orders([["list", _CONNECTION]])[0].get("runs", ()):
                if str(run.get("status")).startswith("finished"):
                    return self.failed("relay", how, reason=f"{run['status']}, {run.get('status-details')}")
        return self.failed("relay", how)

    def _start(self, what: str, options: Sequence[str]) -> subprocess.Popen[bytes]:
        command = [str(self._programs / "python"), str(_HERE / "launch.py"), what, *options]
        with self._log(what).open("ab") as log:
            return subprocess.Popen(
                command, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _environment(self) -> dict[str, str]:
        """Return an environment with Flower's own paths, without telemetry, update checks or installs.

        Secrets of this process may be in its environment, so only what every program needs is passed on.
        """
        kept = {name: value for name, value in os.environ.items() if name in _PASSED_ON}
        path = os.pathsep.join([str(self._programs), os.environ.get("PATH", os.defpath)])
        own = {
            "PATH": path,
            "FLWR_HOME": str(self._home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2",
        }
        return kept | own

    def _own(self, name: str) -> str:
        return str(self._folder / name)

    def _log(self, what: str) -> Path:
        return self._home / f"{what}.log"


def stop(process: subprocess.Popen[bytes]) -> None:
    """End one of Flower's processes, also one that waits for connections to close."""
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_error(log: Path) -> str | None:
    """Return the last line of a log of Flower that reports an error; it has paths and numbers, never data."""
    with contextlib.suppress(OSError):
        lines = re.sub(r"\x1b\[[\d;]*m", "", log.read_text(errors="replace")).splitlines()
        # After a crash comes what other programs report about it, so a traceback's last line counts first.
        for pattern in (r"[\w.]+(?:Error|Exception|Exit|Interrupt)\b.*", r"ERROR\W.*"):
            found = [line.strip() for line in lines if re.match(pattern, line)]
            if found:
                return found[-1][:_LONGEST_REASON]
    return None


def _documents(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that a program printed one after the other."""
    found, reader = [], json.JSONDecoder()
    with contextlib.suppress(ValueError):
        while text := text.strip():
            document, end = reader.raw_decode(text)
            found.append(document)
            text = text[end:]
    return found


def _reached(host: str) -> str:
    """Return the host at which this machine reaches a server that listens at `host`."""
    return "127.0.0.1" if host in ("0.0.0.0", "::") else host


def answers_at(address: tuple[str, int]) -> bool:
    """Return whether something listens at an address."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection((_reached(address[0]), address[1]), timeout=1.0),
    ):
        return True
    return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
