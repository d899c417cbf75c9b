"""Start what the tests of the service need: the service itself, and a PostgreSQL server on loopback."""

import contextlib
import json
import os
import pwd
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import uvicorn

from discreet.service.running import configured
from ports import free_port

SOURCE = Path(__file__).parents[2] / "src"
_PATIENCE = 300


class Server:
    """Run `discreet serve` in a process of its own, which may be killed and started again."""

    def __init__(self, target, store=None, *options, port=None, log=None):
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "discreet", "serve", str(target), "--port", str(self.port)]
        self._command += ["--per-minute", "0", "--batch-seconds", "0.01", *map(str, options)]
        # Without bytecode: on a full disk Python leaves truncated files behind, which later imports read.
        self._environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
        if store is not None:
            self._environment["DISCREET_STORE"] = store
        self._log = log
        self._process = None

    def start(self):
        with Path(os.devnull if self._log is None else self._log).open("ab") as output:
            self._process = subprocess.Popen(self._command, env=self._environment, stderr=output)
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            assert self._process.poll() is None, "the service ended by itself"
            with contextlib.suppress(URLError, OSError), urlopen(f"{self.url}/health", timeout=60):
                return self
            time.sleep(0.05)
        raise AssertionError("the service did not start")

    def kill(self):
        """End it without a word, as a power cut would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def peak_mb(self):
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    @contextlib.contextmanager
    def full_disk(self):
        """Let every write fail that makes a file longer than a page."""
        before = resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (4096, before[1]))
        yield
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, before)

    def stop(self):
        """Ask it to end, and return how it did."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            return self._process.wait(timeout=_PATIENCE)
        return None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


class InProcess:
    """Run an application in a thread: starts at once, and what it did can be looked at."""

    def __init__(self, app):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._server = uvicorn.Server(configured(app, "127.0.0.1", self.port))
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join()


def ask(
    url,
    body=None,
    kind="application/octet-stream",
    method=None,
    headers=None,
    patience=_PATIENCE,
    context=None,
):
    """Return status, headers and body of an answer, whatever its status."""
    request = Request(url, data=body, headers={"content-type": kind, **(headers or {})}, method=method)
    try:
        with urlopen(request, timeout=patience, context=context) as answer:
            return answer.status, answer.headers, answer.read()
    except HTTPError as error:
        return error.code, error.headers, error.read()


def until(is_so):
    """Wait until something is so."""
    end = time.monotonic() + _PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it never was"
        time.sleep(0.02)


def ask_json(url, body=None, kind="application/json", **options):
    status, _, raw = ask(url, None if body is None else json.dumps(body).encode(), kind, **options)
    return status, json.loads(raw)


class Postgresql:
    """Run a PostgreSQL server of its own in a folder, on loopback; root starts it as its own user."""

    def __init__(self, folder, programs=None):
        self._folder = Path(folder)
        self._port = free_port()
        self._bin = programs or postgresql_programs()
        # Without Debian's package there is no user of that name.
        self._user = next(name for name in ("postgres", "nobody") if _has_user(name))
        self._as_user = ["runuser", "-u", self._user, "--"] if os.geteuid() == 0 else []
        self._count = 0

    def start(self):
        if self._as_user:
            shutil.chown(self._folder, self._user)
        self._run("initdb", "-D", self._folder / "data", "-A", "trust", "-U", "discreet", "--no-sync")
        return self.again()

    def again(self):
        """Start a server whose data are there."""
        data = self._folder / "data"
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._folder}"
        self._run(
            "pg_ctl", "-D", data, "-w", "-t", _PATIENCE, "-l", self._folder / "log", "-o", options, "start"
        )
        return self

    def fresh(self):
        """Return the address of an empty database."""
        self._count += 1
        name = f"reports_{self._count}"
        self._run("createdb", "-h", "127.0.0.1", "-p", self._port, "-U", "discreet", name)
        return f"postgresql://discreet@127.0.0.1:{self._port}/{name}"

    def stop(self):
        self._run("pg_ctl", "-D", self._folder / "data", "-m", "immediate", "stop")

    def _run(self, program, *arguments):
        command = [*self._as_user, str(self._bin / program), *map(str, arguments)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


def _has_user(name):
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def postgresql_programs():
    """Return the folder of the newest PostgreSQL server, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def pgvector_programs():
    """Return the folder of a PostgreSQL server with pgvector: the system's, that of `pgserver`, or None."""
    found = postgresql_programs()
    if found is not None and _has_pgvector(found):
        return found
    wheel = find_spec("pgserver")
    if wheel is None:
        return None
    inside = Path(wheel.origin).parent / "pginstall" / "bin"
    return inside if _has_pgvector(inside) else None


def _has_pgvector(programs):
    folders = (
        Path("/usr/share/postgresql") / programs.parent.name,
        programs.parent / "share" / "postgresql",
        programs.parent / "share",
    )
    return any((folder / "extension" / "vector.control").is_file() for folder in folders)
