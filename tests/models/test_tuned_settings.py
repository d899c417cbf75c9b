"""Tuned constants are few: each further one must replace another, or come with a reason."""

import ast
from pathlib import Path

import discreet
from discreet.models.user_factorization.settings import BOUND, EDGE, STATED, FactorizationSettings

ROOT = Path(discreet.__file__).parent
#: Tuned constants that other models share: `COUNT_PART`, `_LIKING` and `_NEARLY_ALL`.
SHARED = 3


def tuned(described):
    return [name for name, one in described.items() if one.chosen not in (BOUND, EDGE, STATED)]


def test_at_most_thirty_constants_are_tuned():
    assert len(tuned(FactorizationSettings().described())) + SHARED <= 30


def test_training_has_no_decimal_numbers_besides_its_settings():
    """A tuned number outside the settings would not be counted; those that are left have a reason."""
    # 0.03 is the share of a release for `discreet.synthesize`, which a fit makes only on request.
    reasons = {-0.5, 0.5, 1.0, 2.0, 0.0, 0.999, 1e-150, 1e-300, 1e-9, 1e-6, 0.01, 0.02, 0.03}
    for path in (ROOT / "models/user_factorization").glob("*.py"):
        if path.name in ("settings.py", "votes_first.py", "public_features.py"):
            continue
        numbers = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, float)
        }
        assert numbers <= reasons, path.name
