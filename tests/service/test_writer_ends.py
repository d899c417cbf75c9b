"""The thread that writes groups ends when it is told to: after what waits, and with the service."""

import asyncio
import queue
import threading
from types import SimpleNamespace

from discreet.service import writer as writers
from discreet.service.collect_app import collecting_app
from discreet.service.writer import GroupWriter


def gathered(*waiting):
    """Return what is taken after a first one, from a writer that has no thread."""
    writer = GroupWriter.__new__(GroupWriter)
    writer._waiting, writer._seconds = queue.SimpleQueue(), 0.0
    for one in waiting:
        writer._waiting.put(one)
    return writer._gather("first")


def test_a_group_is_what_waits_and_knows_of_the_end(monkeypatch):
    monkeypatch.setattr(writers, "MOST_TOGETHER", 3)
    assert gathered() == (["first"], False)
    assert gathered("second") == (["first", "second"], False)
    assert gathered("second", "third", "fourth") == (["first", "second", "third"], False)
    # The end that came with a group is not asked for again: nobody would send it twice.
    assert gathered(None) == (["first"], True)
    assert gathered("second", None) == (["first", "second"], True)


def writing():
    return {thread for thread in threading.enumerate() if thread.name == "group commit"}


def test_the_writer_of_an_application_ends_with_it(films):
    before = writing()
    app = collecting_app(SimpleNamespace(campaign=films, is_closed=False))
    (own,) = writing() - before

    async def live():
        async with app.router.lifespan_context(app):
            assert own.is_alive()

    asyncio.run(live())
    own.join(60)
    assert not own.is_alive()
