"""Declare our docstring sections to the docstring parser: `Guarantee` and others have no colon.

mkdocstrings loads this extension (mkdocs.yml). Contract suites hold every mechanism and estimator to these
sections, also those of other packages, so that the source keeps its form and the site adds the colon.
"""

from __future__ import annotations

import re
from typing import Any

try:
    from griffe import Extension
except ImportError:  # Tests look at the function below without the libraries of the site.
    Extension = object

_SECTION = re.compile(r"^(Guarantee|Noise|Assumes|Parameters|Stability)\n(?=    )", re.MULTILINE)


def with_colons(text: str) -> str:
    """Return a docstring whose sections a parser of Google's style knows."""
    return _SECTION.sub(r"\1:\n", text.replace("\nExample:\n", "\nExamples:\n"))


class OurSections(Extension):
    """Mend the docstring of each object as it is read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Mend one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = with_colons(obj.docstring.value)
