"""A model answers from a history that comes with the request; nothing of it stays."""

import html
import json
import re
import shlex
import warnings
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from pydantic import ValidationError

from discreet.core.checks import ParameterError
from discreet.core.randomness import PrivacyRandom
from discreet.models.answers import Listing, SimilarItem, nothing_similar
from discreet.models.fitted import FittedModel
from discreet.models.popularity import Popularity
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.service import recommend_app
from discreet.service.questions import Question
from discreet.service.recommend_app import answering_app
from discreet.service.shared_app import new_app
from discreet.service.similar import SimilarQuestions
from service.servers import InProcess, ask, ask_json
from toy import toy_interactions


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "toy.discreet"
    # Enough people and budget that taste shows: without it nothing is like anything.
    model = UserFactorization(epsilon=5.0, delta=1e-3).fit(
        toy_interactions(n_users=3000), random=PrivacyRandom.simulate(1)
    )
    model.save(path)
    with InProcess(answering_app(path)) as service:
        yield service, model


def test_recommends_what_the_library_recommends(answering):
    service, model = answering
    items = model.catalog.ids.tolist()[:3]
    history = dict(zip(items, (5.0, 1.0, 4.0), strict=True))
    status, answer = ask_json(f"{service.url}/recommend", {"history": history, "k": 5})
    expected = model.recommend(history, 5)
    assert status == 200 and [one["item"] for one in answer["items"]] == [item for item, _ in expected]
    unknown = {**history, "no such item": 3.0}
    assert ask_json(f"{service.url}/recommend", {"history": unknown, "ignore_unknown": True})[0] == 200
    status, answer = ask_json(f"{service.url}/recommend", {"history": unknown})
    assert status == 422 and (answer["fields"]["count"], answer["fields"]["of"]) == (1, 4)
    assert "('no such item')" in answer["error"]


def test_says_what_is_similar_and_what_is_promised(answering):
    service, model = answering
    item = model.catalog.ids.tolist()[0]
    status, answer = ask_json(f"{service.url}/similar?item={quote(item)}&k=3")
    assert status == 200 and [one["item"] for one in answer["items"]] == [
        other for other, _ in model.similar_items(item, 3)
    ]
    assert ask_json(f"{service.url}/label")[1]["guarantee"]["epsilon"] == 5.0
    assert ask_json(f"{service.url}/health")[1] == {"status": "ok"}
    paths = ask_json(f"{service.url}/openapi.json")[1]["paths"]
    assert {"/recommend", "/similar", "/label", "/health"} <= set(paths)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'{"history": 7}', b'{"history": {}, "k": 0}', b'{"history": {"a": "b"}}',
     b'{"history": {"1": 1e999}}', b'{"history": [["a", 1, 2]]}', b'{"history": [{"item": "a", "when": 2}]}',
     b'{"history": [{"item": "a", "time": 1}, {"item": "b"}]}', b'{"history": ["a", ["b", 1]]}',
     b"[" * 100_000, bytes(100)],
)  # fmt: skip
def test_bad_questions_get_a_sentence(answering, body):
    status, _, raw = ask(f"{answering[0].url}/recommend", body, "application/json")
    assert status == 422 and json.loads(raw)["error"].endswith(".")


@pytest.mark.parametrize(
    ("more", "named"),
    [({"k": 0}, "`k`"), ({"k": "3"}, "`k`"), ({"exclude_seen": 1}, "`exclude_seen`"),
     ({"user": []}, "`user`"),
     ({"history": 7}, "`history`"), ({"secret": 1}, "unknown field")],
)  # fmt: skip
def test_a_refusal_names_the_field_and_quotes_nothing(answering, more, named):
    status, answer = ask_json(f"{answering[0].url}/recommend", {"history": [], **more})
    assert status == 422 and named in answer["error"] and "secret" not in answer["error"]


@pytest.mark.parametrize(
    ("asked", "named"),
    [("", "`item` is missing"), ("?item=a&k=x", "`k`"), ("?item=a&secret=1", "item and k")],
)
def test_a_parameter_that_is_missing_wrong_or_unknown_is_named(answering, asked, named):
    status, answer = ask_json(f"{answering[0].url}/similar{asked}")
    assert status == 422 and named in answer["error"] and "secret" not in answer["error"]


def test_answers_have_the_titles_that_the_model_holds(answering, tmp_path):
    ids = answering[1].catalog.ids.tolist()
    (tmp_path / "titles.csv").write_text("item,title\n" + "".join(f"{one},No. {one}\n" for one in ids))
    answering[1].with_titles(tmp_path / "titles.csv").save(tmp_path / "m.discreet")
    with InProcess(answering_app(tmp_path / "m.discreet")) as service:
        items = ask_json(f"{service.url}/recommend", {"history": [[ids[0], 5]], "k": 2})[1]["items"]
        items += ask_json(f"{service.url}/similar?item={quote(ids[0])}&k=3")[1]["items"]
    assert len(items) >= 2 and all(one["title"] == f"No. {one['item']}" for one in items)
    assert all((one.get("above_noise") or 0) < 1 and "confidence" not in one for one in items)


def test_choices_are_a_list_and_items_without_vectors_have_no_neighbors(tmp_path):
    path = tmp_path / "popular.discreet"
    data = toy_interactions()
    Popularity(epsilon=5.0).fit(data, random=PrivacyRandom.simulate(1)).save(path)
    with InProcess(answering_app(path)) as service:
        chosen = data.catalog.ids.tolist()[:2]
        status, answer = ask_json(f"{service.url}/recommend", {"history": chosen, "k": 4})
        assert status == 200 and len(answer["items"]) == 4
        status, answer = ask_json(f"{service.url}/similar?item={quote(chosen[0])}")
        assert status == 422 and answer["error"].endswith(".")
        assert ask_json(f"{service.url}/recommend", {"history": list(range(100_000))})[0] == 422


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("fault", "status", "words"),
    [(ParameterError("No."), 422, "No."), (ValueError("secret"), 500, "could not be made"), (None, 200, "")],
    ids=["refused", "failed", "made"],
)
def test_a_bundle_is_tried_once_for_each_model(answering, tmp_path, monkeypatch, fault, status, words):
    tried, make = [], recommend_app.bundle_files

    def counted(model):
        tried.append(model)
        if fault is not None:
            raise fault
        return make(model)

    monkeypatch.setattr(recommend_app, "bundle_files", counted)
    path = tmp_path / "m.discreet"
    answering[1].save(path)
    with InProcess(answering_app(path, bundle=True)) as service:
        # A name that no bundle has is looked at first.
        assert ask(f"{service.url}/bundle/no.json")[0] == 404 and not tried
        for _ in range(3):
            found, _, body = ask(f"{service.url}/bundle/label.json")
            assert found == status and words in body.decode() and b"secret" not in body
        assert len(tried) == 1


def test_refusals_speak_http(answering):
    url = answering[0].url
    status, _, raw = ask(f"{url}/recommend")
    told = json.loads(raw)
    assert status == 405 and "POST /recommend" in told["error"]
    assert ask_json(f"{url}/recommend", told["example"])[0] == 200
    status, told = ask_json(f"{url}/recommend", {**told["example"], "history": [["nobody sells this", 3.0]]})
    assert status == 422 and '"ignore_unknown": true' in told["error"] and "--" not in told["error"]
    status, _, raw = ask(f"{url}/label", b"{}", "application/json")
    assert status == 405 and "GET" in json.loads(raw)["error"]


@pytest.fixture
def filters_put_back(monkeypatch):
    """Let another thread end a block of its own whenever somebody sets a warning aside.

    What is warned of belongs to the process: ending a block puts back, for all threads, what was before it.
    """
    real = warnings.simplefilter
    with ThreadPoolExecutor(1) as other:

        def begin():
            block = warnings.catch_warnings()
            other.submit(block.__enter__).result()

            def simplefilter(*arguments, **named):
                real(*arguments, **named)
                other.submit(block.__exit__, None, None, None).result()
                begin()

            monkeypatch.setattr(warnings, "simplefilter", simplefilter)

        yield begin


def test_an_application_is_built_whatever_other_threads_do_about_warnings(filters_put_back, tmp_path):
    filters_put_back()
    assert answering_app(tmp_path / "none.discreet").routes


def test_without_a_filter_the_library_would_fail_then(filters_put_back, tmp_path):
    """The twin: FastAPI alone cannot keep its warning aside."""
    warnings.simplefilter("error")
    filters_put_back()
    with pytest.raises(UserWarning, match="Field"):
        answering_app(tmp_path / "none.discreet")


def test_the_page_of_docs_shows_parameters_and_examples_of_the_own_catalog(answering):
    service, model = answering
    status, _, raw = ask(f"{service.url}/docs")
    page, item = raw.decode(), html.escape(str(model.catalog.ids.tolist()[0]))
    assert status == 200 and "<h2><code>POST /recommend</code></h2>" in page
    assert f"&quot;{item}&quot;" in page and "Example:" in page
    assert "<code>ignore_unknown</code>" in page and "whole number from 1 to" in page
    # Every kind of object that a field names has a table of its own, and no markup is shown as it is.
    assert "Fields of Row" in page and "Fields of Listed" in page and "`" not in page and "(Row)" not in page
    # The policy of the service allows neither scripts nor styles inside a page.
    assert "<script" not in page and "<style" not in page and "style=" not in page
    status, headers, _ = ask(f"{service.url}/docs.css")
    assert status == 200 and headers["content-type"].startswith("text/css")


def commands_of(page):
    """Return the lines for curl of a page, as a shell reads them, by method and path."""
    return [shlex.split(html.unescape(text)) for text in re.findall(r"<pre>(curl .*?)</pre>", page)]


def test_every_route_has_a_command_that_is_answered_and_the_form_of_an_answer(answering):
    service = answering[0]
    page = ask(f"{service.url}/docs")[2].decode()
    described = ask_json(f"{service.url}/openapi.json")[1]["paths"]
    commands = commands_of(page)
    routes = sum(len(methods) for methods in described.values())
    assert page.count("Answer, in this form") == routes and len(commands) >= routes
    host = service.url.partition("://")[2]
    for _, _, address, *rest in commands:
        assert address.startswith(host)
        if address.endswith("/metrics"):
            assert rest == ["-H", "Authorization: Bearer TOKEN"]
            continue
        body = rest[rest.index("-d") + 1].encode() if rest else None
        status, _, raw = ask(f"http://{address}", body)
        assert status == 200, (address, raw)


def test_a_host_that_is_none_is_not_shown(answering):
    page = ask(f"{answering[0].url}/docs", headers={"host": "x'; rm -rf; <b>"})[2].decode()
    assert "rm -rf" not in page and "curl -s localhost:8080/recommend" in page


def test_many_items_are_answered_in_one_request(answering):
    service, model = answering
    ids = model.catalog.ids[:2].tolist()
    status, found = ask_json(f"{service.url}/similar", {"items": [ids[0], "no such item", ids[1]], "k": 3})
    alone = [ask_json(f"{service.url}/similar?item={quote(item)}&k=3")[1] for item in ids]
    assert status == 200 and [found["answers"][0], found["answers"][2]] == alone
    assert found["answers"][1].keys() == {"error", "status", "code"} and found["answers"][1]["status"] == 422


@pytest.mark.parametrize(
    "body",
    [{}, {"items": []}, {"items": ["a"] * 101}, {"items": ["a"], "k": 0}, {"items": ["a"], "x": 1}, [], "a"],
)
def test_questions_about_many_items_are_checked(answering, body):
    status, answer = ask_json(f"{answering[0].url}/similar", body)
    assert status == 422 and "1 to 100 ids" in answer["error"] and answer["example"]["k"] == 3


def test_a_wrong_question_about_many_people_is_shown_how_to_ask_about_many(answering):
    address = f"{answering[0].url}/recommend"
    for body in ({"people": [{"history": []}], "k": 1}, {"people": []}, {"people": "ann"}):
        status, answer = ask_json(address, body)
        assert status == 422 and answer["example"].keys() == {"people"}
    assert ask_json(address, answer["example"])[0] == 200


def test_an_empty_list_of_neighbors_says_why(answering, monkeypatch):
    service, model = answering
    item, other = model.catalog.ids.tolist()[:2]
    for near, why in (([], nothing_similar(item)), ([SimilarItem(other, 0.5, 0.9)], None)):
        listed = Listing(near, why_empty=nothing_similar(item))
        monkeypatch.setattr(FittedModel, "similar_items", lambda *_, listed=listed: listed)
        alone = ask_json(f"{service.url}/similar?item={quote(item)}")[1]
        assert len(alone["items"]) == len(near) and alone["why"] == why
        assert ask_json(f"{service.url}/similar", {"items": [item]})[1]["answers"] == [alone]


def test_a_rejection_is_a_problem_with_a_code_and_fields(answering):
    """RFC 9457: programs read the code and the fields, people read the detail."""
    url = f"{answering[0].url}/recommend"
    expected = {
        b"nonsense": "unprocessable-content",
        b'{"history": [], "k": 0}': "unprocessable-content",
        b'{"history": ["no such item"]}': None,
    }
    for body, code in expected.items():
        status, headers, raw = ask(url, body, "application/json")
        found = json.loads(raw)
        assert headers["content-type"] == "application/problem+json"
        assert status == found["status"] == 422 and found["type"] == "about:blank"
        assert found["detail"] == found["error"] and isinstance(found["fields"], dict) and found["example"]
        assert code is None or found["code"] == code
    status, headers, raw = ask(f"{answering[0].url}/similar?k=0&item=1")
    assert (status, json.loads(raw)["code"]) == (422, "invalid-parameter")
    assert json.loads(raw)["fields"] == {"parameter": "k"}
    assert json.loads(ask(f"{answering[0].url}/nothing")[2])["code"] == "not-found"


@pytest.mark.parametrize("wrong", [None, ["a", 1, 2], {"item": "a", "when": 2}])
def test_of_many_wrong_entries_the_first_is_enough(wrong):
    """A message for each of ten thousand entries would take a tenth of a second."""
    for kind, asked in ((Question, {"history": [wrong] * 50}), (SimilarQuestions, {"items": [wrong] * 50})):
        with pytest.raises(ValidationError) as found:
            kind.model_validate(asked)
        assert found.value.error_count() <= 4


def test_traces_of_the_framework_are_off_whatever_the_environment_sets(monkeypatch):
    telemetry = pytest.importorskip("fastapi.telemetry._asgi")
    monkeypatch.setattr(telemetry, "_unconfigured", lambda provider: False)
    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    assert FastAPI()._native_telemetry.enabled()
    app = new_app("quiet", "quiet")
    assert not app._native_telemetry.enabled() and not app._telemetry["auto_configure"]
