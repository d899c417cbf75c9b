"""What containers and clusters are told to run does run, and their files are valid."""

import json
import re
import subprocess
import sys
import tomllib
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
ALONE = yaml.safe_load((ROOT / "deploy" / "compose.model.yaml").read_text(encoding="utf8"))
COPY = yaml.safe_load((ROOT / "deploy" / "copy-model.yaml").read_text(encoding="utf8"))
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


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(COMPOSE["services"]["recommend"]["command"], id="compose", marks=pytest.mark.slow),
        pytest.param(ALONE["services"]["recommend"]["command"], id="compose alone", marks=pytest.mark.slow),
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
    services = [COMPOSE["services"][name] for name in ("collect", "recommend")]
    for service in (*services, ALONE["services"]["recommend"]):
        assert service["cap_drop"] == ["ALL"] and service["read_only"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "${DATABASE_PASSWORD:?" in COMPOSE["services"]["database"]["environment"]["POSTGRES_PASSWORD"]
    for container in (deployment(), COPY["spec"]["containers"][0]):
        rights = container["securityContext"]
        assert rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"]
    (user,) = re.findall(r"useradd --system --uid (\d+)", IMAGE)
    pod = next(one for one in CLUSTER if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"] == COPY["spec"]["securityContext"]
    assert pod["securityContext"]["runAsUser"] == int(user)


def test_every_file_names_the_image_that_is_built():
    name = f"discreet:{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}"
    named = [COMPOSE["x-service"]["image"], ALONE["services"]["recommend"]["image"], deployment()["image"]]
    assert {*named, COPY["spec"]["containers"][0]["image"]} == {name}
    for text in (IMAGE, (ROOT / "docs" / "serving.md").read_text(encoding="utf8")):
        assert set(re.findall(r"podman build -t (\S+)", text)) == {name}


def test_the_pod_that_copies_fills_the_volume_that_is_served():
    (claim,) = [one["metadata"]["name"] for one in CLUSTER if one["kind"] == "PersistentVolumeClaim"]
    (volume,) = COPY["spec"]["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": claim}
    (mount,) = COPY["spec"]["containers"][0]["volumeMounts"]
    assert mount == {"name": volume["name"], "mountPath": str(Path(deployment()["args"][0]).parent)}
    # It belongs to no service: nothing is asked of it.
    assert not COPY["metadata"].get("labels")


def test_a_model_alone_needs_no_variable_and_finds_the_folder_of_the_checkout():
    text = (ROOT / "deploy" / "compose.model.yaml").read_text(encoding="utf8")
    assert ":?" not in text
    service = ALONE["services"]["recommend"]
    assert (ROOT / "deploy" / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / "deploy" / service["volumes"][0].split(":")[0]).resolve() == ROOT / "data"


def test_the_cluster_example_fits_the_schemas_of_kubernetes():
    schemas = pytest.importorskip(
        "kubernetes_validate", reason="the schemas of Kubernetes (kubernetes-validate) are not installed"
    )
    version = schemas.latest_version()
    for one in (*CLUSTER, COPY):
        schemas.validate(one, version, strict=True)
    # The twin: a field that Kubernetes does not know is refused.
    (wrong,) = [one for one in CLUSTER if one["kind"] == "Service"]
    with pytest.raises(schemas.ValidationError):
        schemas.validate({**wrong, "spec": {**wrong["spec"], "portals": []}}, version, strict=True)


def test_pods_answer_on_their_port_and_reach_nothing():
    kinds = {one["kind"]: one for one in CLUSTER}
    policy, pod = kinds["NetworkPolicy"]["spec"], kinds["Deployment"]["spec"]["template"]
    assert policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"} and policy["egress"] == []
    (allowed,) = policy["ingress"]
    assert [port["port"] for port in allowed["ports"]] == [port["name"] for port in deployment()["ports"]]


def test_parts_of_the_cluster_example_fit_together():
    kinds = {one["kind"]: one for one in CLUSTER}
    pod = kinds["Deployment"]["spec"]["template"]
    assert kinds["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    selected = [kinds[kind]["spec"]["selector"] for kind in ("Deployment", "PodDisruptionBudget")]
    selected += [one["labelSelector"] for one in pod["spec"]["topologySpreadConstraints"]]
    for one in selected:
        assert one["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert kinds["PodDisruptionBudget"]["spec"]["minAvailable"] < kinds["Deployment"]["spec"]["replicas"]
    claims = {one.get("persistentVolumeClaim", {}).get("claimName") for one in pod["spec"]["volumes"]}
    assert kinds["PersistentVolumeClaim"]["metadata"]["name"] in claims
    volumes = {one["name"] for one in pod["spec"]["volumes"]}
    assert {one["name"] for one in deployment()["volumeMounts"]} == volumes
    ports = {one["name"] for one in deployment()["ports"]}
    assert {one["targetPort"] for one in kinds["Service"]["spec"]["ports"]} <= ports
