"""Many people in one request are answered as each is alone; refusals show a body that is answered."""

import json
import re
import socket
import threading

import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.models.popularity import Popularity
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.service import questions, recommend_app
from discreet.service.counting import AnswerCounters
from discreet.service.questions import MOST_HISTORY, MOST_PEOPLE
from discreet.service.recommend_app import answering_app
from service.servers import InProcess, ask, ask_json, until
from toy import toy_interactions

TOKEN = "for tests"


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "toy.discreet"
    model = UserFactorization(epsilon=5.0, delta=1e-3).fit(
        toy_interactions(n_users=300), random=PrivacyRandom.simulate(1)
    )
    model.save(path)
    with InProcess(answering_app(path, metrics_token=TOKEN)) as service:
        yield service, model


def question(model, row, k=5):
    return {"history": [[item, 5.0] for item in model.catalog.ids[row : row + 3].tolist()], "k": k}


def test_many_people_are_answered_as_each_alone(answering):
    service, model = answering
    people = [question(model, row, 3 + row) for row in range(8)]
    status, together = ask_json(f"{service.url}/recommend", {"people": people})
    alone = [ask_json(f"{service.url}/recommend", one)[1] for one in people]
    assert status == 200 and together["answers"] == alone
    assert [len(one["items"]) for one in alone] == list(range(3, 11))


@pytest.mark.parametrize(
    "bad",
    [
        {"history": ["no such item"]},
        {"history": 7},
        {"k": 3},
        7,
        None,
        {"history": [], "k": 0},
        {"history": [], "user": "\ud800"},
        {"history": [["\udfff", 5.0]]},
        {"history": {"\ud800": 5.0}, "ignore_unknown": True},
        {"history": [{"item": "a", "rating": 5.0, "time": "\ud800"}], "ignore_unknown": True},
    ],
    ids=ascii,
)
def test_one_bad_person_does_not_lose_the_others(answering, bad):
    service, model = answering
    people = [question(model, 0), bad, question(model, 1)]
    status, found = ask_json(f"{service.url}/recommend", {"people": people})
    first, refused, last = found["answers"]
    assert status == 200 and len(first["items"]) == 5 and len(last["items"]) == 5
    assert refused["status"] == 422 and refused["error"].endswith(".")


def test_a_fault_with_one_person_says_nothing_and_loses_nobody(answering, monkeypatch, capfd):
    service, model = answering
    plain = questions.one_list

    def faulty(model, person, wanted):
        if wanted.k == 7:
            raise ValueError(f"secret {person}")
        return plain(model, person, wanted)

    monkeypatch.setattr(questions, "one_list", faulty)
    people = [question(model, 0), question(model, 2, k=7), question(model, 1)]
    status, found = ask_json(f"{service.url}/recommend", {"people": people})
    first, refused, last = found["answers"]
    assert status == 200 and len(first["items"]) == 5 and len(last["items"]) == 5
    assert (refused["status"], refused["code"]) == (500, "internal-server-error")
    status, alone = ask_json(f"{service.url}/recommend", people[1])
    assert status == 500 and alone["code"] == refused["code"]
    written = capfd.readouterr().err
    assert '"kind": "ValueError"' in written and "secret" not in written and "Traceback" not in written


@pytest.mark.parametrize(
    "people",
    [
        [],
        {},
        "all",
        [{"history": []}] * (MOST_PEOPLE + 1),
        [{"history": [1] * (MOST_HISTORY // 2 + 1)}] * 2,
        [{"history": [], "k": 1000}] * 11,
        [{"history": [], "k": 1000}] * 11 + [{"history": [], "k": -5000}] * 2,
    ],
    ids=["none", "an object", "a text", "too many", "too long together", "long lists", "lists below zero"],
)
def test_requests_for_many_are_bounded(answering, people):
    status, found = ask_json(f"{answering[0].url}/recommend", {"people": people})
    assert status == 422 and found["error"].endswith(".") and "example" in found


def test_long_lists_of_similar_items_are_bounded_together(answering):
    service, model = answering
    asked = {"items": [model.catalog.ids[:1].tolist()[0]] * 20, "k": 1000}
    status, found = ask_json(f"{service.url}/similar", asked)
    assert status == 422 and "example" in found
    status, found = ask_json(f"{service.url}/similar", {**asked, "k": 500})
    assert status == 200 and len(found["answers"]) == 20


def test_a_peer_that_leaves_is_not_answered_to_the_end(answering, monkeypatch):
    service, model = answering
    begun, go_on, answered, plain = threading.Event(), threading.Event(), [], recommend_app.answer

    def slow(*given):
        begun.set()
        assert go_on.wait(60)
        answered.append(given)
        return plain(*given)

    monkeypatch.setattr(recommend_app, "answer", slow)
    body = json.dumps({"people": [question(model, 0)] * 50}).encode()
    head = b"POST /recommend HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", service.port), timeout=60) as line:
        line.sendall(head + body)
        assert begun.wait(60)
    until(lambda: not service._server.server_state.connections)
    go_on.set()
    # The twin: a peer that stays is answered for all.
    assert len(ask_json(f"{service.url}/recommend", {"people": [question(model, 0)] * 3})[1]["answers"]) == 3
    assert len(answered) <= 1 + 3


def test_many_people_count_as_many_requests(answering, tmp_path):
    path = tmp_path / "toy.discreet"
    answering[1].save(path)
    with InProcess(answering_app(path, per_minute=5)) as service:
        body = {"people": [{"history": []}] * 4}
        alone = {"history": []}
        found = [ask_json(f"{service.url}/recommend", asked)[0] for asked in (body, alone, alone, body)]
        assert found == [200, 200, 429, 429]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"history": 7}', b'{"history": ["no such item"]}'])
def test_a_refusal_shows_a_body_that_is_answered(answering, body):
    service, _ = answering
    status, _, raw = ask(f"{service.url}/recommend", body, "application/json")
    refused = json.loads(raw)
    assert status == 422 and "no such" not in str(refused)
    assert ask_json(f"{service.url}/recommend", refused["example"])[0] == 200


@pytest.mark.few(1)
@pytest.mark.parametrize("interactions", [False, True], ids=["ratings", "interactions"])
def test_every_example_of_the_openapi_description_is_answered(answering, interactions, tmp_path):
    model = answering[1]
    if interactions:
        estimator = UserFactorization(epsilon=5.0, delta=1e-3, feedback="implicit")
        model = estimator.fit(toy_interactions(n_users=300), random=PrivacyRandom.simulate(1))
    model.save(tmp_path / "m.discreet")
    with InProcess(answering_app(tmp_path / "m.discreet")) as service:
        described = ask_json(f"{service.url}/openapi.json")[1]["paths"]["/recommend"]["post"]
        shown = described["requestBody"]["content"]["application/json"]["examples"]
        assert {"one user", "many users"} <= set(shown)
        for one in shown.values():
            status, answer = ask_json(f"{service.url}/recommend", one["value"])
            assert status == 200 and all("items" in each for each in answer.get("answers", [answer]))


def test_every_schema_that_the_description_refers_to_is_there(answering):
    described = ask_json(f"{answering[0].url}/openapi.json")[1]
    named = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(described)))
    assert {"Question", "Questions", "Row"} <= named <= set(described["components"]["schemas"])
    assert "$defs" not in json.dumps(described)


def test_ready_when_there_is_a_model(tmp_path):
    path = tmp_path / "later.discreet"
    with InProcess(answering_app(path)) as service:
        assert ask_json(f"{service.url}/health")[0] == 200
        status, found = ask_json(f"{service.url}/ready")
        assert status == found["status"] == 503 and found["code"] == "service-unavailable"
        assert ask_json(f"{service.url}/recommend", {"history": []})[0] == 404
    Popularity(epsilon=5.0).fit(toy_interactions(), random=PrivacyRandom.simulate(1)).save(path)
    with InProcess(answering_app(path)) as service:
        assert ask_json(f"{service.url}/ready") == (200, {"status": "ready", "model": "popularity"})


def test_counts_are_for_whoever_has_the_token(answering, tmp_path):
    service, model = answering
    assert ask(f"{service.url}/metrics")[0] == 401
    wrong = {"authorization": "Bearer guessed"}
    assert ask(f"{service.url}/metrics", headers=wrong)[0] == 401
    ask_json(f"{service.url}/recommend", question(model, 0))
    ask(f"{service.url}/secret/path")
    status, headers, raw = ask(f"{service.url}/metrics", headers={"authorization": f"Bearer {TOKEN}"})
    text = raw.decode()
    assert status == 200 and headers["content-type"].startswith("text/plain")
    assert 'discreet_answers_total{path="/recommend",status="200"}' in text
    assert "discreet_model_loaded 1" in text and "secret" not in text
    answering[1].save(tmp_path / "m.discreet")
    with InProcess(answering_app(tmp_path / "m.discreet")) as private:
        assert ask(f"{private.url}/metrics", headers={"authorization": "Bearer None"})[0] == 401


def test_counts_add_up():
    counters = AnswerCounters()
    for seconds in (0.001, 0.02, 3.0, 60.0):
        counters.add("/recommend", 200, seconds)
    counters.add("/anything", 404, 0.1)
    text = counters.text(has_model=False)
    at = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line[0] != "#"}
    assert at['discreet_answers_total{path="/recommend",status="200"}'] == 4
    assert at['discreet_answers_total{path="other",status="404"}'] == 1
    bucket = 'discreet_answer_seconds_bucket{{le="{}",path="/recommend"}}'
    assert [at[bucket.format(le)] for le in ("0.005", "0.025", "5.0", "10.0", "+Inf")] == [1, 2, 3, 3, 4]
    assert at['discreet_answer_seconds_count{path="/recommend"}'] == 4
    assert at["discreet_model_loaded"] == 0
