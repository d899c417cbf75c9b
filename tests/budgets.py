"""Guarantees of a user's whole history, for tests that open a session themselves."""

from discreet.privacy.guarantee import Basis, Guarantee, Neighbors, Trust, Unit


def budget(epsilon, delta=0.0, unit=Unit.USER):
    """Return a guarantee with this epsilon and delta."""
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        neighbors=Neighbors.ADD_OR_REMOVE,
        trust=Trust.CENTRAL,
        basis=Basis.PROVED,
    )
