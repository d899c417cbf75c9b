"""What the package index shows: no link that leads nowhere there."""

import importlib.util
import re
from pathlib import Path

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
    assert "![" not in shown and "Choosing a model" in shown and hook().urls("", "1.2.3") == {}


def test_with_an_address_links_lead_to_the_files_of_the_version():
    readme = (ROOT / "README.md").read_text(encoding="utf8")
    shown = hook().for_index(readme, ADDRESS, "1.2.3")
    start = "https://forge.example/us/discreet"
    assert f"![RMSE against epsilon on MovieLens 1M]({start}/raw/v1.2.3/docs/images/accuracy.png)" in shown
    assert f"({start}/blob/v1.2.3/docs/limits.md)" in shown
    assert len(links(shown)) == len(links(readme)) and all(link.startswith("http") for link in links(shown))
    for path in re.findall(r"/v1\.2\.3/([^)#]+)", shown):
        assert (ROOT / path).exists(), path
    for address in hook().urls(ADDRESS, "1.2.3").values():
        named = address.partition("/v1.2.3/")[2]
        assert address.startswith(start) and (ROOT / named).exists()
