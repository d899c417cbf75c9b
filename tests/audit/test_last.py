"""What labels say of the last audit is what the kept run says."""

import json
from pathlib import Path

from discreet.audit import last_audit, last_audits
from discreet.audit.white_box.structure import ROUNDING
from discreet.recipes import MODELS, is_never_private

RUN = Path(__file__).parents[2] / "papers" / "audit" / "results" / "models.json"


def test_the_shipped_audits_are_those_of_the_kept_run():
    run = json.loads(RUN.read_text(encoding="utf8"))
    shipped = Path(last_audits.__file__).with_name("last_audits.json")
    assert json.loads(shipped.read_text(encoding="utf8")) == last_audits.summarized(
        run["found"], run["version"]
    )


def test_every_model_that_promises_something_was_audited_and_none_refuted():
    for name in MODELS:
        found = last_audit(name)
        assert (found is None) == is_never_private(name), name
        if found is not None:
            assert found.verdict == "not refuted" and found.sentence().endswith("An audit is no proof.")
            assert 0 < found.exact <= found.promised * (1 + ROUNDING)
