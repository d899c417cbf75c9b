"""Documentation is executed: every Python example runs, links lead somewhere, tables are up to date."""

import functools
import importlib.util
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import discreet

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf8"), re.DOTALL | re.MULTILINE)


# `make test` runs those of the first pages, and `make test-scripts` those of all others.
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "page",
    [
        page if page.stem in ("README", "start") else pytest.param(page, marks=pytest.mark.scripts)
        for page in PAGES
        if blocks(page)
    ],
    ids=lambda page: page.stem,
)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)


def test_there_are_examples():
    assert any(blocks(page) for page in PAGES if page.name == "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


# Names of files that users have, and parts of a path that stand for any.
NOT_OURS = (
    "run.json",
    "new.json",
    "label.json",
    "bundle.json",
    "items.json",
    "top_shelf.py",
    "top_shelf.md",
    "tests/formats/vX.Y/",
    "launch.py",
)
NAMED = re.compile(r"(?<![\w/.:-])((?:[\w.-]+/)*[\w-]+\.(?:py|md|json|toml|js|svg|png))(?![\w/])")
FOLDERS = re.compile(r"`((?:src|tests|proofs|docs|papers|benchmarks|examples)/[\w./-]*/)`")


def dead_names(text, known):
    """Return files (by any last part of their path) and folders that a text names and that do not exist."""
    text = re.sub(r"https?://\S+", "", text)
    files = [name for name in NAMED.findall(text) if f"/{name.replace('../', '')}" not in known]
    folders = [name for name in FOLDERS.findall(text) if not (ROOT / name).is_dir()]
    return [name for name in files + folders if not name.endswith(NOT_OURS)]


def test_every_file_that_a_page_names_exists():
    known = set()
    for folder in ("src", "tests", "tools", "proofs", "docs", "papers", "benchmarks", "examples"):
        for path in (ROOT / folder).rglob("*"):
            parts = path.relative_to(ROOT).parts
            known |= {"/" + "/".join(parts[start:]) for start in range(len(parts))}
    known |= {f"/{path.name}" for path in ROOT.iterdir()}
    notes = [*(ROOT / "proofs").glob("*.md"), *(ROOT / "papers").glob("*/NOTES.md")]
    for page in [*PAGES, *notes]:
        # Papers name what runs made elsewhere; test_adding_a_model.py writes the files of its page.
        if page.name not in ("papers.md", "adding_a_model.md") and page.parent.name != "papers":
            assert not dead_names(page.read_text(encoding="utf8"), known), page.name
    assert dead_names("`gone.py` in `src/gone/`, `tests/test_docs.py`", known) == ["gone.py", "src/gone/"]


@functools.cache
def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    # As the builder of the site does: a script may import its neighbors.
    sys.path.insert(0, str(ROOT / "docs"))
    # Dataclasses look up the module they stand in.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "docs"))
    return module


@functools.cache
def generated_pages():
    return script("site_pages").generated()


@pytest.mark.scripts
def test_the_site_describes_every_verb_name_proof_and_refusal():
    from discreet.cli.verbs import OLD, commands

    pages = generated_pages()
    listed = pages["reference/commands.md"]
    assert all(f"## discreet {' '.join(words)}\n" in listed for words in commands())
    assert all(f"| `discreet {old}` |" in listed for old in OLD)
    for name in set(discreet.__all__) - {"__version__"}:
        assert sum(f"::: discreet.{name}\n" in page for page in pages.values()) == 1, name
    models = re.findall(r"::: discreet\.(\w+)", pages["reference/python.md"])
    assert models[0] == "UserFactorization" and models.index("Als") > models.index("FrankWolfe")
    assert all(f"proofs/{path.name}" in pages for path in (ROOT / "proofs").glob("*.md"))
    assert not re.search(r"\]\((?!https?:)[^)]*\.\./(src|papers|tests)/", "".join(pages.values()))


@pytest.mark.scripts
def test_the_page_of_errors_lists_every_code():
    from discreet.cli.error_codes import error_classes

    page = generated_pages()["troubleshooting.md"]
    assert all(f"\n| `{code}` |" in page for code in error_classes())


def test_formulas_of_proofs_are_set():
    mathematics = script("mathematics")
    alone = mathematics.displayed("t^2 >= s_i^-2 + sqrt(d) sum over k of q^|k|")
    assert alone.count("<msup>") == 2 and "<msqrt>" in alone and "≥" in alone
    assert "<msubsup><mi>s</mi><mrow><mi>i</mi></mrow><mrow><mo>−</mo><mn>2</mn></mrow></msubsup>" in alone
    assert "<munder><mo>∑</mo><mrow><mi>k</mi></mrow></munder>" in alone
    line = mathematics.in_a_line("|v|_2 <= e^(epsilon + 2 kappa), `e^2` and [x_i](x_i.md)")
    assert line == "|v|<sub>2</sub> ≤ e<sup>ε + 2 κ</sup>, `e^2` and [x<sub>i</sub>](x_i.md)"
    broken = "(`delta_at(x,\ny_i)`)"
    assert mathematics.set_page(broken) == broken
    listed = mathematics.set_page("1. One:\n\n       x_i = 2\n         + 3\n\n   so.\n\n2. Two")
    assert (
        listed.count("<math") == 1 and "\n\n    <span" in listed and listed.endswith("\n\n    so.\n\n2. Two")
    )
    fenced = "```\n    x_i <= 2\n```"
    assert mathematics.set_page(fenced) == fenced
    for path in (ROOT / "proofs").glob("*.md"):
        left = re.sub(r"`[^`]*`", "", mathematics.set_page(path.read_text(encoding="utf8")))
        assert not re.search(r"\w\^[\w(]|(?<!\w)[a-z]_[a-z0-9]\b", left), path.name
        for formula in re.findall(r"<math.*?</math>", left):
            ElementTree.fromstring(formula)


def test_the_papers_page_is_what_the_results_say():
    pages = script("pages").pages_of_papers()
    for place, text in pages.items():
        page = ROOT / "docs" / place
        assert page.read_text(encoding="utf8") == text, f"{place} is out of date. Run docs/build.py papers."
    assert {f"papers/{path.name}" for path in (ROOT / "docs" / "papers").glob("*.md")} < pages.keys()
    # At first sight a quarter of what it once was: 140 KB in one page.
    assert len(pages["papers.md"].encode()) <= 35_000


def test_the_page_of_constants_is_what_the_ablation_says():
    module = script("pages")
    page = module.constants_page(module.kept("ablation"))
    assert page == module.CONSTANTS.read_text(encoding="utf8"), "Run docs/build.py constants."


def test_measured_tables_are_what_the_kept_results_say():
    results, pages = script("results"), script("pages")
    assert results.page() == results.PAGE.read_text(encoding="utf8"), "Run docs/build.py results."
    for path in sorted(pages.RESULTS.glob("*.json")):
        if path.stem not in results.WITHOUT_HOW:
            assert set(results.HOW) <= set(pages.kept(path.stem)), f"{path.name} does not say how."
    assert {path.stem for path in pages.RESULTS.glob("*.json")} >= {*results.SECTIONS, "accuracy"}
    for page in PAGES:
        text = page.read_text(encoding="utf8")
        filled = pages.accuracy_filled(text, pages.kept("accuracy"))
        assert filled == text, f"{page.name} is out of date. Run docs/build.py choosing."
    # The twin: a changed number changes the page.
    changed = pages.kept("accuracy")
    changed["runs"]["jester"]["user-factorization"]["10"]["rmse"] = [9.0, 9.0, 9.0]
    assert results.shortfalls(changed) != results.shortfalls(pages.kept("accuracy"))


def test_the_map_shows_every_package():
    module = script("pictures")
    assert module.LAYERS.read_text(encoding="utf8") == module.layers_picture(), "Run docs/build.py map."
    packages = {path.stem for path in (ROOT / "src" / "discreet").iterdir() if not path.name.startswith("__")}
    drawn = {package.rstrip("/") for layer in module.layers() for package in layer}
    assert packages - {"py", "py.typed"} <= drawn


def test_every_page_is_linked_and_has_its_section():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    listed = (ROOT / "docs/contents.md").read_text(encoding="utf8")
    assert not [page for page in pages - {"contents.md"} if f"({page})" not in listed]
    assert "(docs/contents.md)" in (ROOT / "README.md").read_text(encoding="utf8")
    ordered = {page for section in script("site_pages").ORDER.values() for page in section.values()}
    assert pages <= ordered


def test_links_to_sections_lead_somewhere():
    def sections(page):
        titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf8"), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}

    for page in PAGES:
        for target, mark in re.findall(r"\]\(([\w./-]*\.md)?#([\w-]+)\)", page.read_text(encoding="utf8")):
            found = sections(page.parent / target if target else page)
            assert mark in found, f"{page.name} links to {target}#{mark}"


def test_what_pages_take_from_the_program_is_up_to_date():
    module = script("pages")
    for page, part, content in module.PARTS:
        text = page.read_text(encoding="utf8")
        assert f"<!-- {part} -->" in text and module.fill(text, part, content()) == text, (
            f"{page.name} is out of date. Run docs/build.py readme."
        )
    assert module.TABLE.read_text(encoding="utf8") == module.model_table(), "Run docs/build.py readme."
    everywhere = module.first_models_table() + module.research_table() + module.baselines_table()
    assert all(f"| `{row['name']}` |" in everywhere for row in module.describe_models())


def assumed_lines():
    """Return what labels of all kinds assume, with dots in place of numbers."""
    from discreet import model_settings
    from discreet.data.facts import PublicFacts
    from discreet.federated import SharedNoise
    from discreet.follow import FollowAgreement, FollowSettings
    from discreet.privacy.guarantee import Kind

    kinds = [(), ("scale", "n_items"), ("chosen", "chosen scale"), ("picked",)]
    facts = [PublicFacts(n_items=9, step=1, max_per_user=5, n_users=70, from_file=kind) for kind in kinds]
    facts.append(PublicFacts(n_items=9, low=1, high=1))
    names = [row["name"] for row in model_settings.describe_models() if row["unit"] != "nothing"]
    year = FollowSettings(releases=2, half_life=7.0, epsilon=1.0, delta=1e-6)
    lines = []
    for fact in facts:
        for estimator in model_settings.estimators(names, [1.0], None):
            if fact.low < fact.high or estimator.feedback == "implicit":
                lines += [one.text for one in estimator.promise(fact).assumes if one.kind is not Kind.RAW]
        lines += [one.text for one in year.promise(fact).assumes]
    for noise in (SharedNoise(parties=3, missing=0), SharedNoise(parties=4, missing=1)):
        agreed = FollowAgreement(run="r", settings=year, facts=facts[0], noise=noise)
        lines += [one.text for one in agreed.promise().assumes]
    return {
        re.sub(r"(epsilon=)?\d[\d,.]*", "…", line).removesuffix(" (taken from the data without noise)")
        for line in lines
    }


def test_the_list_of_what_is_assumed_is_whole():
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf8")
    listed = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    found = assumed_lines()
    assert len(found) > 15 and not found - set(listed)


def test_names_for_new_models_are_promised_to_stay():
    page = (ROOT / "docs" / "adding_a_model.md").read_text(encoding="utf8")
    kept = (ROOT / "docs" / "stability.md").read_text(encoding="utf8")
    for names in re.findall(r"^(?:\s*>>> )?from discreet[\w.]* import (.+)$", page, re.MULTILINE):
        for name in names.split(", "):
            assert f"`{name}`" in kept, name


def test_the_search_finds_what_people_look_for():
    module = script("site_pages")
    pages = {
        f"{page.stem}.html#part": " ".join(page.read_text(encoding="utf8").split())
        for page in PAGES
        if page.parent == ROOT / "docs"
    }
    parts = [{"location": place, "title": "", "text": text} for place, text in pages.items()]
    assert not module.missing_words({"docs": parts})
    # The twin: a word that only another page has is missed.
    elsewhere = [{**part, "location": "index.html"} for part in parts]
    assert module.missing_words({"docs": elsewhere}) == list(module.SEARCHED)


def test_symptoms_are_checked_by_their_first_results():
    module = script("site_pages")
    first = {symptom: ["index", pages[0]] for symptom, pages in module.SYMPTOMS.items()}
    assert len(first) >= 20 and module.unfound_symptoms(first) == []
    # The twin: a page in fourth place is not found.
    fourth = {symptom: ["index", "index", "index", *pages] for symptom, pages in first.items()}
    assert module.unfound_symptoms(fourth) == list(module.SYMPTOMS)
    ordered = {page for section in module.ORDER.values() for page in section.values()}
    assert {f"{page}.md" for pages in module.SYMPTOMS.values() for page in pages} <= ordered
    weights = [module.search_boost(page) for page in ("symptoms.md", "data.md", "proofs/session.md")]
    assert weights == sorted(weights, reverse=True) and len(set(weights)) == 3


# Written by docs/build.py from results; all other pages are written by hand.
GENERATED = ("constants.md", "results.md", "papers.md")
MOST_WORDS = 24_000


def hand_written_words(text):
    """Return the number of words of prose, without code and without what scripts fill in."""
    filled = r"<!-- ([\w-]+) -->\n.*?<!-- /\1 -->"
    code = r"^```.*?^```|^<script>.*?</script>|^<div.*?^</div>|^ {4,}\S.*?$|`[^`\n]*`"
    prose = re.sub(rf"(?ms){filled}|{code}", "", text)
    return sum(bool(re.search(r"\w", word)) for word in prose.split())


def test_the_documentation_is_short():
    pages = [page for page in PAGES if page.is_relative_to(ROOT / "docs") and page.name not in GENERATED]
    words = {
        page.name: hand_written_words(page.read_text("utf-8"))
        for page in pages
        if page.parent.name != "papers"
    }
    assert sum(words.values()) <= MOST_WORDS, sorted(words.items(), key=lambda one: -one[1])
    text = "| Two | `f(x)` words |\n\n```\nmore\n```\n\n    code\n<!-- a -->\nmade\n<!-- /a -->\n"
    assert hand_written_words(text) == 2


def test_the_notebook_was_run_and_is_shown():
    tutorial = script("pages")
    kept = json.loads(tutorial.NOTEBOOK.read_text(encoding="utf8"))
    cells = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    page = tutorial.as_markdown(kept)
    assert "```python" in page and "PRIVATE" in page and "<table" in page
    # A cell that fails ends the run: test_scripts.py runs all of them.
    broken = {"cells": [{"cell_type": "code", "source": ["1 / 0"], "outputs": []}]}
    with pytest.raises(ZeroDivisionError):
        tutorial.executed(broken)


def test_sections_of_docstrings_get_the_colon_that_a_parser_wants():
    colons = script("docstring_sections").with_colons
    assert colons("Do.\n\nGuarantee\n    Pure.\n") == "Do.\n\nGuarantee:\n    Pure.\n"
    unchanged = "Guarantee is a word.\nNoise\n"
    assert colons(unchanged) == unchanged


def test_the_readme_is_read_in_two_minutes():
    text = (ROOT / "README.md").read_text(encoding="utf8")
    read = re.sub(r"^```.*?^```|^\|[^\n]*$|\]\([^)]*\)", "", text, flags=re.DOTALL | re.MULTILINE)
    assert len(read.partition("## Documentation")[0].split()) <= 2 * 220


@functools.cache
def known_options():
    """Return the options of every verb, and of the parts of verbs that have several."""
    from discreet.cli.application import command
    from discreet.cli.verbs import commands

    known = {}
    for words in commands():
        verb, part = [*words, ""][:2]
        known[verb, part] = {"--help"}.union(
            *({*each.opts, *each.secondary_opts} for each in command(words).params)
        )
    return known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_have_the_options_they_are_shown_with(page):
    known = known_options()
    text = page.read_text(encoding="utf8").replace("\\\n", " ")
    for line in re.findall(r"(?<![\w./-])discreet ([a-z][^\n`#]*)", text):
        verb, part = [*line.split(), "", ""][:2]
        options = known.get((verb, part)) or known.get((verb, ""), None)
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", line) if options else ():
            assert option in options, f"{page.name}: discreet {line}"


def test_options_named_alone_exist():
    # Options of our scripts, of pytest and of other programs.
    others = {"--toy", "--randomly-seed", "--check", "--search", "--seed", "--install-completion"}
    known = set().union(*known_options().values()) | others
    for page in PAGES:
        for option in re.findall(r"`(--[a-z][a-z-]+)[ `=]", page.read_text(encoding="utf8")):
            assert option in known or page.name == "papers.md", f"{page.name}: {option}"


def test_the_changelog_is_short():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert len(text.encode()) <= 35_000
    for release in text.split("\n## ")[1:]:
        bullets = [" ".join(part.split("\n\n")[0].split()) for part in release.split("\n- ")[1:]]
        assert len(bullets) <= 90, release[:20]
        assert [bullet for bullet in bullets if len(bullet.split()) > 30] == []


def missing_names(names):
    """Return names that their module of `discreet.data` does not define itself."""
    missing = []
    for home, _, name in (one.rpartition(".") for one in names):
        path = ROOT / "src" / "discreet" / "data" / f"{home.replace('.', '/')}.py"
        if not re.search(rf"(?m)^(?:class )?{name}\b(?=[ :(=])", path.read_text("utf-8")):
            missing.append(f"{home}.{name}")
    return missing


def test_the_reference_names_what_modules_define():
    keywords = script("site_pages")._KEYWORDS["data"]
    assert missing_names(keywords) == []
    # The twin: a name that a module imports, or that moved away, has no docstring there.
    assert missing_names(["guessing.Choice"]) == ["guessing.Choice"]


def wrong_changes(names):
    """Return names of files that no release would take into the changelog."""
    return [
        name for name in names if not re.fullmatch(r"[a-z0-9-]+\.(privacy|added|changed|fixed)\.md", name)
    ]


def test_changes_since_the_last_release_are_files_of_one_entry():
    files = sorted((ROOT / "changes").glob("*"))
    assert wrong_changes([file.name for file in files]) == []
    assert [file.name for file in files if len(file.read_text("utf-8").split()) > 30] == []
    assert "[Unreleased]" not in (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert wrong_changes(["faster-lists.changed.md", "faster.md"]) == ["faster.md"]


def test_all_files_name_one_version():
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)[1]
    latest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[1]
    assert latest == version and f"version: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    named = [
        ROOT / "Containerfile",
        ROOT / "compose.yaml",
        *(ROOT / "deploy").glob("*.yaml"),
        ROOT / "docs" / "serving.md",
    ]
    images = {
        image for file in named for image in re.findall(r"discreet:(\d[\w.]*)", file.read_text("utf-8"))
    }
    assert images == {version}
