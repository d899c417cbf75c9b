"""Train through a session that a test can read afterwards: what was spent, and on what."""

from fractions import Fraction

from discreet.core.progress import silent
from discreet.core.randomness import PrivacyRandom
from discreet.privacy.session import Session


def trained(estimator, data, random=None):
    """Return the session of one training, and its scorer; nothing is compared with the guarantee yet."""
    session = Session.open(data, estimator.promise(data.facts), random or PrivacyRandom.simulate(3))
    return session, estimator._trained(session, silent)


def pure_cost(session):
    """Return the exact epsilon of all pure releases of a log."""
    cost = Fraction(0)
    for entry in session.log:
        cost += entry.bound / entry.scale if entry.epsilon is None else entry.epsilon
    return cost


def costs_all_of(session, epsilon):
    """Return whether a log costs this epsilon: never more, and less by rounding of floats and noise alone."""
    least = Fraction(epsilon) * (1 - Fraction(1, 2**35))
    return session.unspent() == 0 and least <= pure_cost(session) <= Fraction(epsilon)
