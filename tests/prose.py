"""Count prose where data should be, by syntax and not by spelling, and terms that the style sheet bans.

Counts may only go down. `python tests/prose.py` lowers the ceilings in `prose_ceilings.json` to the present
counts; with `-v` it lists what is left.
"""

import ast
import json
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CEILINGS = Path(__file__).with_name("prose_ceilings.json")
WORDS = re.compile(r"[A-Za-z][A-Za-z'’-]* +[A-Za-z]")
# An assertion that compares values may have two words, such as the verdict "not refuted".
SENTENCE = re.compile(r"([A-Za-z'’-]+[,:]? +){2}[A-Za-z]")
# At most 40. Names of the API and stored values are in backticks, or aren't prose.
TERMS = (
    "person|persons|people|somebody|whoever|nobody|everybody|customers?|holders?|promises?|promised|paid|pays"
    "|to pay|charged|priced|verdicts?|says|tells|speaks|said|told|heard|holds|stands|besides?|of late"
    "|refuses?|refused|leaves? out|left out|crowds?|likeness|taste|glance|a followed year|is no|are no"
)
BANNED = re.compile(rf"(?i)(?<![-\w.])(?:{TERMS})(?![-\w=(])")
# The name of a parameter in a docstring.
PARAMETER = re.compile(r"(?m)^ +[a-z_]+: ")
# Sentences of earlier versions, word for word.
_OLD = "old_sentences.py"
# Claims of papers get a verdict: "holds", "fails", "cannot be said". Of ratings, these words are banned.
_OF_CLAIMS = ("verdict", "verdicts", "holds", "said")
_SEARCHES = ("startswith", "endswith", "search", "fullmatch", "findall", "count", "index")


def name_of(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def has_words(node, pattern):
    """Return whether an expression contains a literal that the pattern finds."""
    return any(
        isinstance(one, ast.Constant) and isinstance(one.value, str) and pattern.search(one.value)
        for one in ast.walk(node)
    )


def error_names(bases):
    """Return the names of all classes that derive from `DiscreetError`, and typer's own error."""
    names = {"DiscreetError", "BadParameter"}
    while more := {name for name, above in bases.items() if above & names} - names:
        names |= more
    return names


def calls_with_prose(nodes, names):
    """Yield the name and the line of calls of these functions that get a sentence."""
    for one in nodes:
        is_asked = isinstance(one, ast.Call) and name_of(one.func) in names
        if is_asked and any(has_words(argument, WORDS) for argument in one.args):
            yield name_of(one.func), one.lineno


def asserted_prose(nodes):
    """Yield assertions on sentences: `match=`, and comparisons with three words or more."""
    for one in nodes:
        if isinstance(one, ast.keyword) and one.arg == "match":
            yield one
            continue
        compared = []
        if isinstance(one, ast.Compare) and isinstance(one.ops[0], ast.In | ast.NotIn | ast.Eq | ast.NotEq):
            compared = [one.left, *one.comparators]
        elif isinstance(one, ast.Call) and name_of(one.func) in _SEARCHES:
            compared = one.args[:1]
        if any(has_words(side, SENTENCE) for side in compared):
            yield one


def terms_of(text, nodes=None):
    """Yield banned terms: in a page outside of code; in a module in strings, docstrings and comments."""
    if nodes is None:
        parts = [re.sub(r"(?ms)^```.*?^```", "", text)]
    else:
        parts = re.findall(r"(?m)(?:^|\s)# .*$", text)
        # The purpose of a generator is a seed; names of earlier versions and of others' columns can't change.
        kept = {one for node in nodes if _is_fixed(node) for one in ast.walk(node)}
        parts += [
            PARAMETER.sub("", one.value)
            for one in nodes
            if isinstance(one, ast.Constant) and isinstance(one.value, str) and one not in kept
        ]
    for part in parts:
        if " " in part:
            yield from BANNED.findall(re.sub(r"`[^`\n]*`", "", part))


def _is_fixed(node):
    if isinstance(node, ast.Assign):
        return name_of(node.targets[0]).startswith(("OLD_", "_USUAL_NAMES"))
    return isinstance(node, ast.Call) and name_of(node.func) == "experiment_generator"


def package(path):
    """Return what a ceiling is for: a package of `src`, or a folder."""
    parts = path.relative_to(ROOT).parts
    return parts[2] if parts[0] == "src" else parts[0]


@cache
def found():
    """Return what is left, as lists of places, by subject and package."""
    left = {"raised": {}, "asserted": {}, "terms": {}}
    bases, modules = {}, {}
    for path in sorted((ROOT / "src" / "discreet").rglob("*.py")):
        modules[path] = nodes = nodes_of(path)
        bases |= {one.name: set(map(name_of, one.bases)) for one in nodes if isinstance(one, ast.ClassDef)}
        _add_terms(left, path, nodes)
    names = {*error_names(bases), "require"}
    for path, nodes in modules.items():
        for name, line in calls_with_prose(nodes, names):
            left["raised"].setdefault(package(path), []).append(f"{path}:{line} {name}")
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for one in asserted_prose(nodes_of(path)):
            left["asserted"].setdefault("tests", []).append(f"{path}: {ast.unparse(one)[:100]}")
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "proofs").glob("*.md")]:
        _add_terms(left, path)
    return left


def _add_terms(left, path, nodes=None):
    if path.name == _OLD:
        return
    about_claims = path.name == "papers.md" or package(path) == "reproduce"
    for term in terms_of(path.read_text(encoding="utf8"), nodes):
        if about_claims and term.lower() in _OF_CLAIMS:
            continue
        left["terms"].setdefault(package(path), []).append(f"{path} {term.lower()}")


def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text(encoding="utf8"))))


def counts():
    """Return how much is left, by subject and package."""
    return {subject: {name: len(some) for name, some in by.items()} for subject, by in found().items()}


def lowered(before, now):
    """Return ceilings of at most the present counts."""
    return {
        subject: {name: min(most, now[subject][name]) for name, most in by.items() if name in now[subject]}
        for subject, by in before.items()
    }


if __name__ == "__main__":
    if "-v" in sys.argv:
        print("\n".join(each for by in found().values() for some in by.values() for each in some))
    before = json.loads(CEILINGS.read_text(encoding="utf8")) if CEILINGS.exists() else counts()
    content = json.dumps(lowered(before, counts()), indent=1, sort_keys=True)
    CEILINGS.write_text(content + "\n", encoding="utf8")
    print({subject: sum(by.values()) for subject, by in counts().items()})
