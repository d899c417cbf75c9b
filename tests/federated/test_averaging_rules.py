"""Averaged protocols: which questions a party may be asked, and how answers become one, by known answers."""

import numpy as np
import pytest

from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.averaged_users import AveragedUsers
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.wire import Message


@pytest.mark.parametrize("rounds", [1, 3])
def test_users_are_asked_once_a_round_and_nothing_else(rounds):
    """A question more than the rounds would cost privacy that was never promised."""
    protocol = AveragedUsers(epsilon=1.0, delta=1e-6, rounds=rounds)
    users, votes = Message(kind="users"), Message(kind="votes")
    price = protocol.price(users)
    for asked in range(rounds):
        assert protocol.allows(price, [price] * asked)
        assert not protocol.allows(protocol.price(votes), [price] * asked)
    assert not protocol.allows(price, [price] * rounds)
    assert rounds * price + protocol.reserved == 1


@pytest.mark.parametrize(
    ("protocol", "kinds"),
    [
        (AveragedItems(epsilon=1.0, rounds=3), ["votes", *["items"] * 3]),
        (SummedStatistics(epsilon=1.0, rounds=2), ["votes", "moment", "terms", "terms"]),
        (SummedStatistics(epsilon=1.0, delta=0.0), ["votes", "recount"]),
    ],
)
def test_an_honest_run_costs_exactly_the_budget(protocol, kinds):
    prices = [protocol.price(Message(kind=kind)) for kind in kinds]
    assert sum(prices) == 1
    assert protocol.allows(prices[-1], prices[:-1])
    assert not protocol.allows(prices[0], prices)
    assert protocol.price(Message(kind="stranger")) == 0
    assert not protocol.allows(protocol.price(Message(kind="stranger")), [])


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
