"""Compare the constants of Theorem 1 with the bounds that are printed for them: L and beta of both links."""

from __future__ import annotations

from discreet.papers.one_bit.theory import LINKS, link_constants, printed_constants

EPSILONS = (1.0, 2.0, 4.0)


def theorem_1_claims() -> dict[str, list[float]]:
    """Return every constant over its printed bound (at most 1 is printed), and the constants themselves."""
    found: dict[str, list[float]] = {}
    for name in LINKS:
        for epsilon in EPSILONS:
            true, bound = link_constants(name, epsilon), printed_constants(name, epsilon)
            found[f"theorem1-L-{name}-{epsilon:g}"] = [true.steepness / bound.steepness]
            found[f"theorem1-beta-{name}-{epsilon:g}"] = [true.flatness / bound.flatness]
            found[f"theorem1-beta-{name}-{epsilon:g}-is"] = [true.flatness]
        # Appendix A: e^alpha for the logistic link, at most pi sigma^2 e^(alpha^2 / 2 sigma^2) for probit.
        found[f"theorem1-beta-h-{name}"] = [link_constants(name).flatness]
    return found
