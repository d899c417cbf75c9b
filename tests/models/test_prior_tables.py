"""What a fit takes from an earlier release: rows by item, wherever the item stood."""

import numpy as np
import pytest

from discreet.core.randomness import PrivacyRandom
from discreet.data.vocabulary import Vocabulary
from discreet.models.biases import Biases
from discreet.models.user_factorization.estimator import prior_table
from discreet.testing import refuses
from toy import toy_interactions


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    data = toy_interactions(n_users=60, n_items=20, per_user=8)
    model = Biases(epsilon=8.0).fit(data, random=PrivacyRandom.simulate(1))
    path = tmp_path_factory.mktemp("earlier") / "model.discreet"
    model.save(path)
    return path, data.catalog.ids.tolist(), np.asarray(model.scorer.arrays()["item_bias"])


@pytest.mark.parametrize("place", [0, 7, 19])
def test_one_known_item_is_enough_whichever_it_is(earlier, place):
    path, names, effects = earlier
    table = prior_table(path, Vocabulary.of(["new", names[place], "newer"]))
    np.testing.assert_allclose(table[:, 0], [effects.mean(), effects[place], effects.mean()])


def test_items_are_found_by_name_in_any_order(earlier):
    path, names, effects = earlier
    table = prior_table(path, Vocabulary.of(names[::-1]))
    np.testing.assert_allclose(table[:, 0], effects[::-1])


def test_a_release_that_knows_none_of_the_items_is_refused(earlier):
    with refuses("prior-unusable"):
        prior_table(earlier[0], Vocabulary.of(["new", "newer"]))
