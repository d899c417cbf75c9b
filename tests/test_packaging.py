"""The container builds the whole wheel, and the package index shows no link that leads nowhere."""

import importlib.util
import json
import re
import shutil
import zipfile
from importlib.metadata import requires
from pathlib import Path

import pytest
from hatchling.build import build_wheel
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
ADDRESS = "https://forge.example/us/discreet/"


def hook():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def links(text):
    return re.findall(r"\]\(([^)\s]+)\)", text)


def test_without_an_address_no_link_of_the_readme_is_relative():
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    shown = hook().for_index(readme, "", "1.2.3")
    assert any(not link.startswith("http") for link in links(readme))
    assert all(link.startswith(("http", "#")) for link in links(shown))
    assert (
        "![" not in shown
        and "](" in readme
        and len(shown) > len(readme) / 2
        and hook().urls("", "1.2.3") == {}
    )


def test_with_an_address_links_lead_to_the_files_of_the_version():
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    shown = hook().for_index(readme, ADDRESS, "1.2.3")
    start = "https://forge.example/us/discreet"
    assert f"]({start}/raw/v1.2.3/docs/images/overview.png)" in shown
    assert f"({start}/blob/v1.2.3/docs/limits.md)" in shown
    assert len(links(shown)) == len(links(readme)) and all(link.startswith("http") for link in links(shown))
    for path in re.findall(r"/v1\.2\.3/([^)#]+)", shown):
        assert (ROOT / path).exists(), path
    for address in hook().urls(ADDRESS, "1.2.3").values():
        named = address.partition("/v1.2.3/")[2]
        assert address.startswith(start) and (ROOT / named).exists()


def copied_into_the_container():
    """Return the sources that each COPY of the first stage takes from here, and where they go."""
    first = (ROOT / "Containerfile").read_text(encoding="utf8").split("\nFROM ")[1].replace("\\\n", " ")
    return [line.split()[1:] for line in first.splitlines() if line.startswith("COPY ")]


def files(folder):
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in found}


@pytest.fixture
def container(tmp_path, monkeypatch):
    """Lay out the folder that the container builds in, and work there."""
    place = tmp_path / "build"
    place.mkdir()
    for *sources, target in copied_into_the_container():
        for source in sources:
            if (ROOT / source).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, place / target, ignore=ignored, dirs_exist_ok=True)
            else:
                shutil.copy(ROOT / source, place / target)
    monkeypatch.chdir(place)
    return place


def test_the_container_builds_the_whole_wheel(container, tmp_path):
    with zipfile.ZipFile(tmp_path / build_wheel(str(tmp_path))) as wheel:
        built = set(wheel.namelist())
        metadata = wheel.read(next(name for name in built if name.endswith("/METADATA"))).decode()
        commands = wheel.read(next(name for name in built if name.endswith("/entry_points.txt"))).decode()
    expected = {f"discreet/{name}" for name in files(ROOT / "src" / "discreet")}
    expected |= {f"discreet/proofs/{name}" for name in files(ROOT / "proofs")}
    printed = [
        path for name in ("claims.toml", "printed.json") for path in (ROOT / "papers").glob(f"*/{name}")
    ]
    expected |= {f"discreet/reproduce/printed/{path.parent.name}/{path.name}" for path in printed}
    expected |= {"discreet_verify.py"}
    assert {name for name in built if ".dist-info/" not in name} == expected
    assert {".html", ".css", ".js", ".json", ".md"} <= {Path(name).suffix for name in built}
    assert "# discreet" in metadata and "discreet = discreet.cli:main" in commands
    assert "discreet-verify = discreet_verify:main" in commands
    assert any(name.endswith("/LICENSE") for name in built)


@pytest.mark.parametrize("missing", ["hatch_build.py", "README.md"])
def test_without_what_the_build_reads_there_is_no_wheel(missing, container, tmp_path):
    (container / missing).unlink()
    with pytest.raises(OSError) as caught:
        build_wheel(str(tmp_path))
    assert missing in str(caught.value)


def test_kernels_go_into_a_wheel_of_the_sources_they_were_compiled_from(tmp_path):
    source, made = tmp_path / "src" / "discreet" / "loops.py", tmp_path / "build" / "kernels"
    source.parent.mkdir(parents=True)
    source.write_text("STEPS = 4\n")
    assert hook().compiled_kernels(tmp_path) == {}
    made.mkdir(parents=True)
    (made / "target.json").write_text(json.dumps({"sources": hook().digest_of_sources(tmp_path)}))
    assert hook().compiled_kernels(tmp_path) == {str(made): "discreet/core/compiled"}
    source.write_text("STEPS = 5\n")
    assert hook().compiled_kernels(tmp_path) == {}


LOCKED = re.compile(r"[a-z0-9-]+==[0-9][\w.]*(    --hash=sha256:[0-9a-f]{64})+")


def test_actions_are_pinned_by_commit_and_the_image_by_a_lock():
    root = Path(__file__).parents[1]
    used = re.findall(r"uses: *(\S+)", (root / ".github/workflows/check.yml").read_text())
    assert used and all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", one) for one in used)
    build = (root / "Containerfile").read_text()
    assert build.count("--require-hashes") == 2
    for name, needed in (
        ("service", {"fastapi", "uvicorn", "polars", "cryptography", "psycopg"}),
        ("build", {"hatchling"}),
    ):
        assert f"requirements-{name}.lock" in re.findall(r"--require-hashes -r (\S+)", build)
        text = (root / f"requirements-{name}.lock").read_text()
        blocks = text.partition("\n")[2].replace(" \\\n", "").splitlines()
        assert all(LOCKED.fullmatch(block) for block in blocks)
        assert needed <= {block.partition("==")[0] for block in blocks}


def needs(names):
    """Return what these packages need beyond themselves, by what is installed here."""
    found = set()
    for name in names:
        asked = [Requirement(line) for line in requires(name) or []]
        now = [one for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
        found |= {re.sub(r"[-_.]+", "-", one.name).lower() for one in now}
    return found - set(names)


@pytest.mark.parametrize("lock", ["service", "build"])
def test_a_lock_names_all_that_its_packages_need(lock):
    # pip refuses a package without a hash, so one that is missing ends the build of the image.
    text = (ROOT / f"requirements-{lock}.lock").read_text(encoding="utf8")
    names = re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE)
    assert needs(names) == set()
    assert needs([name for name in names if name not in ("pydantic-core", "tomlkit")]) != set()
