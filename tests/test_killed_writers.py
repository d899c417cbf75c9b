"""A process that is killed while it replaces a folder or a table leaves one of both, and can be repeated."""

import contextlib
import os
import sys

import pytest

from discreet.core.files import write_folder
from discreet.core.randomness import PrivacyRandom
from discreet.models.user_factorization.estimator import UserFactorization
from discreet.synthesis import labels as files
from discreet.synthesis.labels import is_synthetic
from discreet.synthesis.making import make
from toy import toy_interactions

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork and renameat2")

OLD, NEW = {"a": b"old", "b/c": b"old"}, {"a": b"new", "b/c": b"new"}


def killed_at(line, module, work):
    """Do work in a process that dies at this line of a module; return whether it ended before."""
    child = os.fork()
    if child == 0:
        count = 0

        def trace(frame, event, _):
            nonlocal count
            if not frame.f_code.co_filename.endswith(module):
                return None
            count += event == "line"
            if count == line:
                os._exit(9)
            return trace

        sys.settrace(trace)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.thorough
def test_a_folder_is_replaced_in_one_step(tmp_path):
    found, line, ended = [], 0, False
    while not ended:
        line += 1
        (place := tmp_path / str(line)).mkdir()
        write_folder(place / "out", OLD)
        ended = killed_at(
            line,
            "core/files.py",
            lambda place=place: write_folder(place / "out", NEW, replaces=lambda _: True),
        )
        assert content(place / "out") in (OLD, NEW), f"killed at line {line}"
        found.append(content(place / "out") == NEW)
        write_folder(place / "out", NEW, replaces=lambda _: True)
        assert content(place / "out") == NEW
    assert not found[0] and found[-1] and line > 10


class Killed(BaseException):
    """What ends a process."""


@pytest.mark.few(2)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_table_and_its_label_are_put_right_by_the_same_command(tmp_path, monkeypatch, first, after):
    recipe = UserFactorization(epsilon=5.0, delta=1e-5, for_synthesis=True)
    model = recipe.fit(toy_interactions(), random=PrivacyRandom.simulate(1))
    one, other = (make(model, 20, length=3, seed=seed) for seed in (1, 2))
    out = tmp_path / "made.csv"
    if not first:
        files.write_synthetic(model, one, out)
    written, whole = [], files.write_whole

    def dying(path, raw):
        written.append(path)
        whole(path, raw)
        if len(written) == after:
            raise Killed

    monkeypatch.setattr(files, "write_whole", dying)
    with contextlib.suppress(Killed):
        files.write_synthetic(model, other, out, force=not first)
    monkeypatch.undo()
    files.write_synthetic(model, other, out, force=out.exists())
    assert is_synthetic(out) and sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [out.name, files.label_path(out).name]
    )
