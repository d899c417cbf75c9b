"""What happens once before all tests: which examples are drawn, and on what noise."""

import gc
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

import few
from command_line import Answer

# The default run is the same on every machine; `make test-random` looks further, with fresh seeds.
settings.register_profile("default", derandomize=True, max_examples=50, deadline=None)
settings.register_profile("random", derandomize=False, max_examples=1_000, deadline=None, print_blob=True)
settings.load_profile("default")


def pytest_addoption(pluginmanager):
    """See to it that tests run on noise that repeats."""
    # Plugins of their own: the hooks of this file are not called for doctests of the package.
    pluginmanager.import_plugin("seeded_noise")
    pluginmanager.import_plugin("doctests")
    pluginmanager.import_plugin("snapshot")


# Fixtures that start a browser or a database, which `make browser` brings.
_SYSTEMS = {"postgresql", "database", "profile"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what starts other systems, and what is left to `make test-thorough`; CI runs all of it."""
    for item in items:
        given = item.callspec.params.values() if hasattr(item, "callspec") else ()
        stored = any(isinstance(value, str) and value == "postgresql" for value in given)
        if stored or _SYSTEMS & set(getattr(item, "fixturenames", ())):
            item.add_marker("systems")
    for item in few.others(items):
        item.add_marker("thorough")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for garbage among what tests make, and not again and again among all that was imported."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def discreet(capsys, monkeypatch):
    """Call the command line in this process; return its code and what it printed."""
    # Not before stale kernels are gone.
    from discreet import cli
    from discreet.cli import application

    errors, complain = [], application.complain

    def remember(error, *options):
        errors.append(error)
        complain(error, *options)

    monkeypatch.setattr(application, "complain", remember)

    def call(*arguments):
        errors.clear()
        monkeypatch.setattr(sys, "argv", ["discreet", *map(str, arguments)])
        try:
            cli.main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        shown = capsys.readouterr()
        return Answer((code, shown.out, shown.err), *errors)

    return call


@pytest.fixture(scope="session")
def postgresql():
    """Return a running PostgreSQL server."""
    from service.servers import Postgresql, postgresql_programs

    if postgresql_programs() is None:
        pytest.skip("PostgreSQL is not installed; `make browser` brings it")
    pytest.importorskip("psycopg", reason="the extra `postgresql` is not installed")
    # Not pytest's own folder: the server's user must be able to enter it.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = Postgresql(folder).start()
        yield server
        server.stop()
