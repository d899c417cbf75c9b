"""local-nuclear tries stronger latent factors only as long as held-out reports gain from them."""

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.papers.collection import nuclear
from discreet.papers.collection.nuclear import LocalNuclear
from toy import toy_interactions


@pytest.mark.parametrize(
    ("losses", "tried"),
    [
        ([0.0], 1),  # no gain at all is the end, not a reason to look further
        ([0.1], 1),
        ([-1.0, -1.0], 2),
        ([-1.0, -2.0, -1.5], 3),
        ([-1e-9, 0.0], 2),
    ],
)
def test_the_search_ends_with_the_first_step_that_gains_nothing(losses, tried, monkeypatch):
    left, asked = list(losses), []

    def loss(cells, found):
        asked.append(found)
        return left.pop(0), 0.0

    monkeypatch.setattr(nuclear, "stands_out", lambda *_: True)
    monkeypatch.setattr(nuclear, "held_out_loss", loss)
    data = toy_interactions(n_users=40, n_items=15, per_user=6)
    model = LocalNuclear(epsilon=8.0).fit(data, random=PrivacyRandom.simulate(1))
    assert len(asked) == tried and not left
    assert (np.shape(model.scorer.device.item_factors)[1] > 0) <= (min(losses) < 0)
