"""What containers and clusters are told to run does run, and their files are valid."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from discreet.core.randomness import PrivacyRandom
from discreet.models.popularity import Popularity
from service.servers import Server, ask, ask_json
from toy import toy_interactions

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf8"))
CLUSTER = list(yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf8")))
IMAGE = (ROOT / "Containerfile").read_text(encoding="utf8")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "shop.discreet"
    Popularity(epsilon=5.0).fit(toy_interactions(), random=PrivacyRandom.simulate(1)).save(path)
    return path


def options(command, folder):
    """Return what a command says beside its file, without its port and with files in a folder of the test."""
    rest = [str(word) for word in command[1:]]
    assert rest[rest.index("--port") + 1 :][:1] == ["8080"] if "--port" in rest else True
    if "--port" in rest:
        place = rest.index("--port")
        del rest[place : place + 2]
    return [str(folder / word) if word.endswith(".discreet") else word for word in rest]


def deployment():
    (found,) = [one for one in CLUSTER if one["kind"] == "Deployment"]
    return found["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.slow
def test_the_image_serves_what_its_command_says(films, tmp_path):
    assert json.loads(re.search(r"^ENTRYPOINT (.*)$", IMAGE, re.MULTILINE)[1]) == ["discreet", "serve"]
    command = json.loads(re.search(r"^CMD (.*)$", IMAGE, re.MULTILINE)[1])
    (tmp_path / command[0]).write_bytes(films.to_bytes())
    told = options(command, tmp_path)
    told[told.index("--store") + 1] = f"sqlite:///{tmp_path}/reports.db"
    server = Server(tmp_path / command[0], None, *told)
    with server:
        assert ask_json(f"{server.url}/health")[0] == 200
        assert server.stop() == 0


def test_compose_collects_into_postgresql(films, postgresql, tmp_path):
    service = COMPOSE["services"]["collect"]
    (tmp_path / service["command"][0]).write_bytes(films.to_bytes())
    assert service["environment"]["DISCREET_STORE"].startswith("postgresql://")
    server = Server(
        tmp_path / service["command"][0], postgresql.fresh(), *options(service["command"], tmp_path)
    )
    with server:
        assert ask_json(f"{server.url}/health")[1]["status"] == "ok"
        check = [word.replace("8080", str(server.port)) for word in service["healthcheck"]["test"][2:]]
        assert subprocess.run([sys.executable, *check]).returncode == 0
        assert server.stop() == 0
    # The twin: without a service the check fails.
    assert subprocess.run([sys.executable, *check], stderr=subprocess.DEVNULL).returncode != 0


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(COMPOSE["services"]["recommend"]["command"], id="compose", marks=pytest.mark.slow),
        pytest.param(deployment()["args"], id="cluster"),
    ],
)
def test_a_model_is_served_and_probed(command, model, tmp_path):
    assert command[0].endswith(".discreet")
    server = Server(model, None, *options(command, tmp_path))
    with server:
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert ask(f"{server.url}{deployment()[probe]['httpGet']['path']}")[0] == 200
        assert ask_json(f"{server.url}/recommend", {"history": []})[0] == 200
        assert server.stop() == 0


def test_services_have_no_rights_and_no_password():
    for name in ("collect", "recommend"):
        service = COMPOSE["services"][name]
        assert service["cap_drop"] == ["ALL"] and service["read_only"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "${DATABASE_PASSWORD:?" in COMPOSE["services"]["database"]["environment"]["POSTGRES_PASSWORD"]
    rights = deployment()["securityContext"]
    assert rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"]
    (user,) = re.findall(r"useradd --system --uid (\d+)", IMAGE)
    pod = next(one for one in CLUSTER if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] == int(user)


def test_the_cluster_example_fits_the_schemas_of_kubernetes():
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="the schemas of Kubernetes (kubernetes-validate) are not installed"
    )
    version = schemas.latest_version()
    for one in CLUSTER:
        schemas.validate(one, version, strict=True)
    # The twin: a field that Kubernetes does not know is refused.
    (wrong,) = [one for one in CLUSTER if one["kind"] == "Service"]
    with pytest.raises(schemas.ValidationError):
        schemas.validate({**wrong, "spec": {**wrong["spec"], "portals": []}}, version, strict=True)


def test_parts_of_the_cluster_example_fit_together():
    kinds = {one["kind"]: one for one in CLUSTER}
    pod = kinds["Deployment"]["spec"]["template"]
    assert kinds["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert kinds["Deployment"]["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    claims = {one.get("persistentVolumeClaim", {}).get("claimName") for one in pod["spec"]["volumes"]}
    assert kinds["PersistentVolumeClaim"]["metadata"]["name"] in claims
    volumes = {one["name"] for one in pod["spec"]["volumes"]}
    assert {one["name"] for one in deployment()["volumeMounts"]} == volumes
    ports = {one["name"] for one in deployment()["ports"]}
    assert {one["targetPort"] for one in kinds["Service"]["spec"]["ports"]} <= ports
