"""Averaged protocols: which questions a party may be asked, and how answers become one, by known answers."""

import numpy as np
import pytest

from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.averaged_users import AveragedUsers


@pytest.mark.parametrize("rounds", [1, 3])
def test_users_are_asked_once_a_round_and_nothing_else(rounds):
    """A question more than the rounds would cost privacy that was never promised."""
    protocol = AveragedUsers(epsilon=1.0, delta=1e-6, rounds=rounds)
    for asked in range(rounds):
        assert protocol.may_ask("users", ["users"] * asked)
        assert not protocol.may_ask("votes", ["users"] * asked)
    assert not protocol.may_ask("users", ["users"] * rounds)
    assert not protocol.may_ask("users", ["users"] * (rounds + 1))


def test_profiles_are_averaged_over_holders_and_origins_over_parties():
    totals = {
        "listed": np.array([2.0, 1.0, 0.0]),
        "bias": np.array([4.0, -3.0, 9.0]),
        "factors": np.array([[2.0], [3.0], [0.0]]),
        "places": np.array([[6.0], [5.0], [0.0]]),
        "origin": np.array([8.0]),
    }
    found = AveragedItems(epsilon=1.0, delta=1e-6).combine(totals, 4)
    # The last item is listed by nobody who answered: it comes last.
    np.testing.assert_array_equal(found["bias"], [2.0, -3.0, -3.0])
    np.testing.assert_array_equal(found["factors"], [[1.0], [3.0], [0.0]])
    np.testing.assert_array_equal(found["places"], [[3.0], [5.0], [0.0]])
    np.testing.assert_array_equal(found["origin"], [2.0])
    np.testing.assert_array_equal(found["listed"], totals["listed"])
    votes = AveragedItems(epsilon=1.0, delta=1e-6).combine({"votes": np.array([3.0, 5.0])}, 4)
    np.testing.assert_array_equal(votes["votes"], [3.0, 5.0])
