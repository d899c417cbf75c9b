"""A call as another library has it raises an error that shows ours."""

import numpy as np
import pytest
import scipy.sparse as sp

import discreet as package
from discreet.core.errors import CallOfAnotherLibrary
from toy import toy_interactions


@pytest.fixture(scope="module")
def model():
    return package.Popularity(epsilon=1.0).fit(toy_interactions(seed=2))


def test_the_call_of_implicit_shows_ours(model):
    row = sp.csr_matrix(np.ones((1, 3)))
    calls = (
        lambda: model.recommend(3, row, N=5),
        lambda: model.recommend(3, row),
        lambda: model.recommend(np.int64(3), user_items=row),
        lambda: model.recommend([1, 2], top_k=5),
    )
    for call in calls:
        with pytest.raises(CallOfAnotherLibrary) as caught:
            call()
        assert caught.value.given
    # The twin: our own calls work.
    known = model.catalog.ids.tolist()[:2]
    assert len(model.recommend(known, 3)) == len(model.recommend(known, k=np.int64(3))) == 3
