"""One who asks cannot stop the service for others: answers are made beside the event loop, within bounds."""

import asyncio
import json
import threading

import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.models.popularity import Popularity
from discreet.service import publishing, questions, recommend_app
from discreet.service.limits import RefusedError
from discreet.service.recommend_app import answering_app
from discreet.service.workers import Workers
from service.servers import InProcess, ask, ask_json
from toy import toy_interactions

PATIENCE = 60


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "popular.discreet"
    Popularity(epsilon=5.0).fit(toy_interactions(), random=PrivacyRandom.simulate(1)).save(path)
    return path


@pytest.fixture
def gate(monkeypatch):
    """Let nothing be recommended before the gate is opened."""
    opened, whole = threading.Event(), questions.one_list

    def slow(*given, **named):
        assert opened.wait(PATIENCE)
        return whole(*given, **named)

    monkeypatch.setattr(questions, "one_list", slow)
    monkeypatch.setattr(publishing, "_is_quick", lambda _: False)
    yield opened
    opened.set()


def test_only_a_fast_model_is_answered_on_the_event_loop(model, monkeypatch):
    assert publishing.publish(model).is_quick
    monkeypatch.setattr(publishing, "_QUICK_SECONDS", 0.0)
    assert not publishing.publish(model).is_quick


def in_thread(work, *given):
    found = []
    thread = threading.Thread(target=lambda: found.append(work(*given)))
    thread.start()
    return thread, found


def test_others_are_answered_while_one_answer_takes_long(model, gate):
    with InProcess(answering_app(model)) as service:
        thread, found = in_thread(ask_json, f"{service.url}/recommend", {"history": []})
        assert ask_json(f"{service.url}/health", patience=PATIENCE / 6)[0] == 200
        assert not found
        gate.set()
        thread.join()
        assert found[0][0] == 200


def test_beyond_the_queue_requests_are_refused_at_once(model, gate, monkeypatch):
    monkeypatch.setattr(recommend_app, "Workers", lambda: Workers(threads=1, waiting=1))
    with InProcess(answering_app(model)) as service:
        url = f"{service.url}/recommend"
        started = [in_thread(ask_json, url, {"history": []}) for _ in range(3)]
        while all(thread.is_alive() for thread, _ in started):
            started[0][0].join(0.01)
        gate.set()
        for thread, _ in started:
            thread.join()
        found = [answers[0] for _, answers in started]
        assert sorted(status for status, _ in found) == [200, 200, 503]
        assert any("try again" in answer.get("error", "") for _, answer in found)


def test_a_history_has_a_most_length_and_the_sentence_says_so(model):
    with InProcess(answering_app(model)) as service:
        url = f"{service.url}/recommend"
        for history in ([f"id{k:05d}" for k in range(60_000)], {f"id{k}": 5 for k in range(60_000)}):
            body = json.dumps({"history": history, "ignore_unknown": True}).encode()
            status, _, raw = ask(url, body, "application/json")
            assert status == 422 and "10,000 items" in json.loads(raw)["error"]
        most = {"history": [f"id{k}" for k in range(10_000)], "ignore_unknown": True}
        assert ask_json(url, most)[0] == 200


BODIES = {
    "pairs": b'{"history":[' + b"[1,4]," * 100_000 + b"[1,4]]}",
    "nested": b"[" * 200_000,
    "people": b'{"people":[' + b"{}," * 200_000 + b"{}]}",
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_body_of_many_small_parts_is_not_parsed(kind, monkeypatch):
    """While one thread parses, the event loop waits, too."""
    monkeypatch.setattr(questions, "orjson", None)
    with pytest.raises(RefusedError):
        questions.loaded(BODIES[kind], questions.MOST_HISTORY, {})


def test_similar_counts_as_a_request(model):
    with InProcess(answering_app(model, per_minute=2)) as service:
        statuses = [ask(f"{service.url}/similar?item=a")[0] for _ in range(4)]
    assert statuses == [422, 422, 429, 429]


def test_whoever_waits_too_long_is_told_so_and_what_has_not_begun_never_does():
    gate, ran = threading.Event(), []

    async def ask_twice():
        workers = Workers(threads=1, waiting=1, seconds=0.05)
        for work in (gate.wait, lambda: ran.append(1)):
            with pytest.raises(RefusedError) as caught:
                await workers.run(work)
            assert caught.value.status == 503
        gate.set()
        workers.stop()

    asyncio.run(ask_twice())
    assert not ran
