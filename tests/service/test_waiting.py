"""When a device tries again and when a service counts anew: known clocks, known chances, no waiting."""

import asyncio
import io
from email.message import Message
from types import SimpleNamespace
from urllib.error import HTTPError

import pytest

from discreet.core.checks import DataError, FileError
from discreet.service import client as client_module
from discreet.service.client import CollectionClient
from discreet.service.errors import ServiceUnreachable
from discreet.service.limits import RateLimit, RefusedError, body_of
from discreet.testing import refuses


class Request:
    """A request from one host whose body arrives in parts."""

    def __init__(self, *parts, host="a", declared=None):
        self.client = SimpleNamespace(host=host)
        self.headers = {} if declared is None else {"content-length": str(declared)}
        self._parts = list(parts)

    async def receive(self):
        part = self._parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(self._parts)}


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that stands still until it is set."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr("discreet.service.limits.time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


@pytest.mark.parametrize(("byte", "part"), [(0, 0.5), (128, 0.75), (255, 0.998)])
def test_pauses_grow_and_half_of_each_is_drawn(byte, part, monkeypatch):
    slept = []
    monkeypatch.setattr(client_module, "time", SimpleNamespace(sleep=slept.append))
    monkeypatch.setattr(client_module.os, "urandom", lambda size: bytes([byte] * size))
    client = CollectionClient("http://nobody")

    def unreachable(path, body=None, headers=None):
        raise ServiceUnreachable()

    monkeypatch.setattr(client, "_ask", unreachable)
    with refuses("service-unreachable"):
        client.send(b"x")
    assert slept == pytest.approx([part * pause for pause in (0.2, 0.5, 1.0, 2.0, 5.0)], rel=1e-3)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, DataError),
        (404, DataError),
        (408, FileError),
        (429, FileError),
        (499, DataError),
        (500, FileError),
    ],
)
def test_only_some_refusals_are_worth_another_try(status, kind):
    error = HTTPError("http://nobody", status, "no", Message(), io.BytesIO(b'{"error": "No."}'))
    assert isinstance(client_module._refusal(error), kind)


def test_a_peer_has_its_requests_again_when_the_minute_is_over(clock):
    limit = RateLimit(2)
    for _ in range(2):
        limit.check("a")
    clock.seconds += 59.999
    with pytest.raises(RefusedError) as caught:
        limit.check("a")
    assert caught.value.status == 429
    limit.check("b")
    # Exactly a minute after the first request counting begins anew.
    clock.seconds = 1060.0
    for _ in range(2):
        limit.check("a")
    with pytest.raises(RefusedError) as caught:
        limit.check("a")
    assert caught.value.status == 429


def test_a_body_of_exactly_the_most_bytes_is_taken():
    assert asyncio.run(body_of(Request(b"abc", b"de"), 5)) == b"abcde"
    assert asyncio.run(body_of(Request(b"abcde", declared=5), 5)) == b"abcde"
    with pytest.raises(RefusedError) as caught:
        asyncio.run(body_of(Request(b"abc", b"def"), 5))
    assert caught.value.status == 413
    with pytest.raises(RefusedError) as caught:
        asyncio.run(body_of(Request(declared=6), 5))
    assert caught.value.status == 413
