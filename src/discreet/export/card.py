"""Write a model card in the layout of Hugging Face: YAML for programs, then Markdown for readers.

All of it comes from the label of the file and the last audit of its kind of model. The card measures
nothing, and claims nothing that isn't in the label.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.core import first_bytes
from discreet.core.checks import visible
from discreet.core.yaml_text import yaml_text
from discreet.privacy import Guarantee
from discreet.report import ALONE, NOT_AUDITED, Known, label_markdown, listed_assumptions

if TYPE_CHECKING:
    from discreet.audit.last_audits import LastAudit

#: The name of such a file in messages.
CARD = "model card of discreet"
_FIRST = re.compile(rb'---\r?\nlibrary_name: "?discreet"?\s')
_NAME, _LONGEST = re.compile(r"[a-z][a-z0-9_]{0,40}"), 100
_TAGS = ["recommender-systems", "collaborative-filtering"]
_USE = """## Use

```python
import discreet

model = discreet.load({file})  # hf_hub_download(REPOSITORY, {file}) gets it from Hugging Face
history = {history}  # {order}; used here and not stored
for one in model.recommend(history, k=10):
    print(one.item, one.score, one.title)
```
"""
_OPEN = """## What the file doesn't state

The publisher adds license, training data, and measured accuracy here. `discreet evaluate --private`
measures accuracy with noise, so its scores may be published. Scores of a plain `discreet evaluate` may not.
"""
_LIMITS = """## Limits

Epsilon bounds what the file reveals about any user in the training data. It doesn't make recommendations
correct or fair, and it doesn't hide what many users have in common. If you pass a history to the model, it
is as private as the machine that computes with it.
"""


def model_card(
    label: Mapping[str, Any], signed: str, last: LastAudit | None, known: Known = ALONE, *, file: str
) -> str:
    """Return the card of a model from its label, its signer, the last audit, and the name of its file."""
    promise = Guarantee.from_json(label["guarantee"])
    private = promise.is_private and not promise.simulated
    front = {
        "library_name": "discreet",
        "tags": [*_TAGS, *(["differential-privacy"] if private else [])],
        "model_name": str(label["name"]),
        "data": _data(label),
        "settings": _settings(label),
        "privacy": _privacy(promise),
        "audit": None if last is None else _audit(last),
    }
    sentence = known.audit or NOT_AUDITED
    if last is not None and last.present and promise.is_private and promise.epsilon != last.promised:
        sentence += (
            f" Both numbers belong to models that guarantee epsilon {last.promised:g}. This model guarantees "
            f"epsilon {promise.epsilon:g} and wasn't attacked itself."
        )
    parts = [
        f"---\n{yaml_text(front)}---\n",
        f"# {visible(str(label['name']))}\n",
        label_markdown(label, promise, signed, known._replace(audit="")),
        f"## Audit\n\n{sentence}\n",
        _use(label, file),
        _OPEN,
        _LIMITS,
    ]
    return "\n".join(parts)


def _use(label: Mapping[str, Any], file: str) -> str:
    """Return code that loads the file and makes a list. It passes ratings if the model reads them."""
    rated = _data(label)["feedback"] == "ratings"
    return _USE.format(
        # As a literal, since a file may have any name, and without the end of a code block.
        file=json.dumps(visible(file)).replace("`", "\\x60"),
        history='[("ITEM", 5.0), ("ANOTHER", 3.0)]' if rated else '["ITEM", "ANOTHER"]',
        order="items with ratings, oldest first" if rated else "items, oldest first",
    )


def _data(label: Mapping[str, Any]) -> dict[str, Any]:
    """Return the label's facts about the data: only facts that the guarantee assumes to be public."""
    facts = label.get("facts", {})
    low, high = facts.get("low"), facts.get("high")
    rated = low != high
    scale = {"lowest_rating": low, "highest_rating": high} if rated else {}
    found = {"feedback": "ratings" if rated else "interactions", "items": facts.get("n_items"), **scale}
    return {name: value for name, value in found.items() if _is_plain(value)}


def _settings(label: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the settings of the fit that are a single value. Epsilon and delta are under `privacy`."""
    found = {
        name: value
        for name, value in label.get("parameters", {}).items()
        if name not in ("epsilon", "delta") and _NAME.fullmatch(name) and _is_plain(value)
    }
    return found or None


def _is_plain(value: object) -> bool:
    """Return whether a value is a word or number that YAML can express.

    Unknown authors may store anything.
    """
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bool | int) or (isinstance(value, str) and len(value) <= _LONGEST)


def is_card(path: Path) -> bool:
    """Return whether a file begins like our cards. Words that others added below don't matter."""
    return _FIRST.match(first_bytes(path, 64)) is not None


def _privacy(promise: Guarantee) -> dict[str, Any]:
    """Return the guarantee for programs. A model without a guarantee has no epsilon."""
    bounded = promise.is_private
    return {
        "private": bounded and not promise.simulated,
        "epsilon": float(promise.epsilon) if bounded else None,
        "delta": float(promise.delta) if bounded else None,
        "unit": promise.unit.value,
        "neighbors": promise.neighbors.value,
        "trust": promise.trust.value,
        "read_raw_ratings": promise.reads_raw_ratings,
        "basis": promise.basis.value,
        "proof": promise.proof,
        "simulated": promise.simulated,
        "assumes": listed_assumptions(promise) or None,
    }


def _audit(last: LastAudit) -> dict[str, Any]:
    return {
        "date": last.date,
        "version": last.version,
        "verdict": last.verdict,
        "of_the_present_form": last.present,
        "epsilons": list(last.tried),
        "at_epsilon": last.promised,
        "worst_case_epsilon": last.exact,
        "attacks_prove_at_least": max(last.refuted, last.curve),
    }
