"""Look for doctests only in files that have some.

Nine in ten files have none, and pytest would look through every name of every one of them in each process.
"""

import pytest
from _pytest.doctest import DoctestModule


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    found = yield
    if file_path.suffix == ".py" and ">>>" not in file_path.read_text(encoding="utf8"):
        return [one for one in found if not isinstance(one, DoctestModule)]
    return found
