"""Events are dp-accounting's own, made and read without loading its accountants."""

import subprocess
import sys
from importlib.machinery import ModuleSpec

import pytest

from discreet.core.checks import PrivacyError
from discreet.privacy.accounting import events
from discreet.privacy.accounting.accountant import event_from_json, event_to_json
from discreet.privacy.accounting.events import event_types
from discreet.privacy.mechanisms.additive import Gaussian, Laplace

MAKE = """
import sys
from discreet.privacy.accounting.accountant import compose, event_from_json, event_to_json, pure_event
from discreet.privacy.mechanisms.additive import Gaussian, Laplace
noises = Gaussian(sigma=2.0, l2_sensitivity=1.0), Laplace(scale=2.0, l1_sensitivity=1.0)
whole = compose([*(noise.event() for noise in noises), pure_event(0.5)])
again = event_from_json(event_to_json(whole))
assert again == whole
"""
IS_LOADED = "print(any(name in sys.modules for name in ('dp_accounting', 'dp_accounting.pld')))"


def printed(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


ONE_CLASS = """
import dp_accounting
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
assert dp_accounting.dp_event is dp_event is sys.modules["dp_accounting.dp_event"]
assert type(noises[0].event()) is dp_accounting.GaussianDpEvent is dp_event.GaussianDpEvent
assert isinstance(whole, dp_accounting.DpEvent)
print(RdpAccountant().compose(noises[0].event()).get_epsilon(1e-6) > 0)
"""


def test_making_and_reading_events_loads_no_accountant_and_one_class_of_each():
    # The twin: a price that needs an accountant loads it; its events are of the classes that were there.
    asked = "from discreet.privacy.accounting.accountant import epsilon_at\nepsilon_at(whole, 1e-6)\n"
    told = printed(MAKE + IS_LOADED + "\n" + asked + IS_LOADED + ONE_CLASS)
    assert told.split() == ["False", "True", "True"]


@pytest.mark.thorough
def test_there_is_one_class_of_each_event_if_accountants_were_imported_first():
    code = "import sys, dp_accounting" + MAKE + ONE_CLASS
    assert printed(code) == "True"


def test_no_noise_is_still_refused():
    for without in (Gaussian(sigma=0.0, l2_sensitivity=1.0), Laplace(scale=0.0, l1_sensitivity=1.0)):
        assert type(without.event()) is event_types().NonPrivateDpEvent
        with pytest.raises(PrivacyError):
            event_to_json(without.event())
    noise = Gaussian(sigma=2.0, l2_sensitivity=1.0).event()
    assert event_from_json(event_to_json(noise)) == noise


@pytest.mark.parametrize("found", [None, ModuleSpec("dp_accounting.dp_event", None)])
def test_without_a_place_to_load_from_python_looks_for_the_module(found, monkeypatch):
    """A missing package is then Python's own error, which names it."""
    own = event_types()
    monkeypatch.delitem(sys.modules, own.__name__)
    monkeypatch.setattr(events.PathFinder, "find_spec", lambda *_: found)
    monkeypatch.setattr(events.importlib, "import_module", lambda name: own if name == own.__name__ else None)
    assert event_types() is own
