"""Every curl command of the page about serving is run against a real service."""

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.models.user_factorization.estimator import UserFactorization
from service.servers import Server
from toy import toy_interactions

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf8")
# A line that a backslash ends goes on in the next.
COMMANDS = re.findall(r"^\$ (curl .*)$", re.sub(r"\s*\\\n\s*", " ", PAGE), re.MULTILINE)
TOKEN = "for-tests"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    path = tmp_path_factory.mktemp("model") / "shop.discreet"
    data = toy_interactions(n_users=3000, n_items=40)
    # Items of the page are numbers.
    data = replace(data, catalog=Vocabulary.range(data.n_items, start=1))
    model = UserFactorization(epsilon=5.0, delta=1e-3).fit(data, random=PrivacyRandom.simulate(1))
    model.save(path)
    with Server(path, None, "--metrics-token", TOKEN) as server:
        yield server


def test_there_are_commands():
    assert len(COMMANDS) >= 9 and any("people" in one for one in COMMANDS)


@pytest.mark.few(3)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_is_answered(service, command):
    words = shlex.split(command.replace("localhost:8080", f"127.0.0.1:{service.port}"))
    words = [word.replace("$DISCREET_METRICS_TOKEN", TOKEN) for word in words]
    done = subprocess.run([*words, "--fail"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    if "/metrics" in command:
        assert "discreet_answers_total" in done.stdout
        return
    answer = json.loads(done.stdout)
    assert "error" not in answer
    if "people" in command:
        assert [("items" in one) for one in answer["answers"]] == [True, False, True]
    elif "/recommend" in command:
        assert len(answer["items"]) == 3
        assert set(answer["items"][0]) == {"item", "score", "expected_stars", "title"}
