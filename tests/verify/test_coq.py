"""Machine-checked lemmas: closed without axioms of our own, and linked from the notes that lean on them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "proofs" / "coq").glob("*.v"))
NAMED = re.compile(r"^\s*(?:Lemma|Theorem)\s+(\w+)", re.MULTILINE)
# Words that leave a lemma open, or assume it.
OPEN_ENDS = re.compile(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Conjecture|Abort|give_up)\b")


def lemmas(path):
    return NAMED.findall(path.read_text(encoding="utf8"))


def test_there_are_enough_lemmas_and_none_is_left_open():
    assert len(FILES) >= 5 and sum(len(lemmas(path)) for path in FILES) >= 12
    for path in FILES:
        text = path.read_text(encoding="utf8")
        assert not OPEN_ENDS.search(text), path.name
        assert len(lemmas(path)) == text.count("Qed."), path.name
    assert OPEN_ENDS.search("Proof. Admitted.")


def test_every_file_is_linked_and_every_link_leads_to_a_lemma():
    known = {name: path.name for path in FILES for name in lemmas(path)}
    linked = set()
    for note in (ROOT / "proofs").glob("*.md"):
        _, _, section = note.read_text(encoding="utf8").partition("## Machine-checked\n")
        assert "Not machine-checked:" in section, note.name
        for names, file in re.findall(r"((?:`\w+`(?:, )?)+) \(\[`coq/(\w+\.v)`\]", section):
            for name in re.findall(r"\w+", names):
                assert known[name] == file, (note.name, name)
                linked.add(file)
    assert linked == {path.name for path in FILES}
    listed = (ROOT / "proofs" / "coq" / "README.md").read_text(encoding="utf8")
    assert all(f"`{path.name}`" in listed for path in FILES)


@pytest.mark.systems
@pytest.mark.skipif(shutil.which("coqc") is None, reason="needs Coq: make coq")
def test_coq_closes_every_lemma():
    done = subprocess.run(["make", "proofs"], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"{sum(len(lemmas(path)) for path in FILES)} lemmas closed." in done.stdout


@pytest.mark.systems
@pytest.mark.skipif(shutil.which("coqc") is None, reason="needs Coq: make coq")
def test_coq_rejects_a_false_lemma(tmp_path):
    """The twin: a tail with one digit less room isn't provable."""
    text = (ROOT / "proofs" / "coq" / "sampler_tails.v").read_text(encoding="utf8")
    (tmp_path / "wrong.v").write_text(text.replace("exp (-88.9) <= / 2 ^ 128", "exp (-88.9) <= / 2 ^ 129", 1))
    done = subprocess.run(["coqc", "-q", "wrong.v"], cwd=tmp_path, capture_output=True, timeout=120)
    assert done.returncode != 0
