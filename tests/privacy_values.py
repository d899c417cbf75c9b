"""Guarantees for tests: one that can be changed, and a strategy over all of them."""

import itertools
import math

from hypothesis import strategies as st

from assumption_examples import assumptions
from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit

FRAMES = list(itertools.product(Unit, Neighbors, Trust))
epsilons = st.floats(1e-9, 1e3)
deltas = st.floats(0, 0.3)
texts = st.lists(st.text(max_size=8), max_size=3).map(tuple)


def make(epsilon=1.0, **changes):
    basis = Basis.NONE if epsilon == math.inf else Basis.PROVED
    definition = {"unit": Unit.USER, "neighbors": Neighbors.ADD_OR_REMOVE, "trust": Trust.JOINT}
    return Guarantee(**{"epsilon": epsilon, "basis": basis, **definition, **changes})


@st.composite
def guarantees(draw):
    unit, neighbors, trust = draw(st.sampled_from(FRAMES))
    return Guarantee(
        epsilon=draw(epsilons | st.just(math.inf)),
        delta=draw(deltas),
        unit=unit,
        neighbors=neighbors,
        trust=trust,
        assumes=draw(st.lists(assumptions(), max_size=3).map(tuple)),
        notes=draw(texts),
        basis=draw(st.sampled_from([Basis.PROVED, Basis.AS_PUBLISHED])),
        proof=draw(st.sampled_from(["", "proofs/biases.md"])),
        simulated=draw(st.booleans()),
    )
