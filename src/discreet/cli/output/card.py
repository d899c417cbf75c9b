"""Write a model card in the layout of Hugging Face: YAML for programs, then Markdown for people.

All of it comes from the label of the file and the last audit of its kind of model. Nothing is measured, and
nothing is claimed that the label does not say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.output.label import label_markdown, yaml_text
from discreet.core.checks import visible
from discreet.privacy.guarantee import RAW, Guarantee

if TYPE_CHECKING:
    from discreet.audit.last_audits import LastAudit

#: The name of such a file in messages.
CARD = "model card of discreet"
_FIRST = re.compile(rb'---\r?\nlibrary_name: "?discreet"?\s')
_TAGS = ["recommender-systems", "collaborative-filtering"]
_USE = """## Use

```python
import discreet

model = discreet.load("model.discreet")
model.recommend(history, k=10)  # the history is used here and forgotten
```
"""
_LIMITS = """## Limits

Epsilon bounds what the file tells about anybody in the training data. It does not make recommendations
correct or fair, and it does not hide what many people have in common. A history that is brought to the model
is as private as the place where it is computed.
"""


def model_card(label: Mapping[str, Any], signed: str, last: LastAudit | None, audited: str) -> str:
    """Return the card of a model from its label, who signed it, and the last audit with its sentence."""
    promise = Guarantee.from_json(label["guarantee"])
    private = promise.is_private and not promise.simulated
    front = {
        "library_name": "discreet",
        "tags": [*_TAGS, *(["differential-privacy"] if private else [])],
        "model_name": str(label["name"]),
        "privacy": _privacy(promise),
        "audit": None if last is None else _audit(last),
    }
    sentence = audited or "This kind of model has not been audited in full. An audit is no proof."
    parts = [
        f"---\n{yaml_text(front)}---\n",
        f"# {visible(str(label['name']))}\n",
        label_markdown(label, signed),
        f"## Audit\n\n{sentence}\n",
        _USE,
        _LIMITS,
    ]
    return "\n".join(parts)


def is_card(path: Path) -> bool:
    """Return whether a file begins as our cards do; words that people added below do not matter."""
    try:
        with path.open("rb") as file:
            return _FIRST.match(file.read(64)) is not None
    except OSError:
        return False


def _privacy(promise: Guarantee) -> dict[str, Any]:
    """Return the promise for programs; a model without one has no epsilon."""
    bounded = promise.is_private
    return {
        "private": bounded and not promise.simulated,
        "epsilon": float(promise.epsilon) if bounded else None,
        "delta": float(promise.delta) if bounded else None,
        "unit": promise.unit.value,
        "neighbors": promise.neighbors.value,
        "trust": promise.trust.value,
        "read_raw_ratings": RAW in promise.notes,
        "basis": promise.basis.value,
        "proof": promise.proof,
        "simulated": promise.simulated,
        "assumes": list(promise.assumes) or None,
    }


def _audit(last: LastAudit) -> dict[str, Any]:
    return {
        "date": last.date,
        "version": last.version,
        "verdict": last.verdict,
        "of_the_present_form": last.present,
        "epsilons": list(last.tried),
        "worst_case_epsilon": last.exact,
        "attacks_prove_at_least": max(last.refuted, last.curve),
    }
