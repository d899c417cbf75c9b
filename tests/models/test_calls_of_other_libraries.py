"""A call as another library has it raises an error that shows ours."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

import discreet as package
from discreet.core.errors import CallOfAnotherLibrary
from discreet.testing import refuses
from toy import toy_interactions


@pytest.fixture(scope="module")
def model():
    return package.Popularity(epsilon=1.0).fit(toy_interactions(seed=2))


def test_the_call_of_implicit_shows_ours(model):
    row = sp.csr_matrix(np.ones((1, 3)))
    calls = (
        lambda: model.recommend(3, row, N=5),
        lambda: model.recommend(3, row),
        lambda: model.recommend("C100000", row, k=10),
        lambda: model.recommend("C100000", row, 10, True),
        lambda: model.recommend(np.int64(3), user_items=row),
        lambda: model.recommend([1, 2], top_k=5),
        lambda: model.recommend("cust_1"),
    )
    for call in calls:
        with pytest.raises(CallOfAnotherLibrary) as caught:
            call()
        assert caught.value.given
    # The twin: our own calls work.
    known = model.catalog.ids.tolist()[:2]
    assert len(model.recommend(known, 3)) == len(model.recommend(known, k=np.int64(3))) == 3


def test_data_without_ratings_is_told_what_the_estimator_takes():
    frame = pl.DataFrame({"user": ["ann", "ann", "bob"], "item": ["tea", "jam", "tea"]})
    estimator = package.UserFactorization(epsilon=1.0)
    with refuses("roles-missing", roles=("rating",)) as caught:
        estimator.fit(frame)
    assert 'feedback="implicit"' in str(caught.value)
    with refuses("unknown-argument", argument="implicit") as caught:
        estimator.fit(frame, implicit=True)
    assert 'feedback="implicit"' in str(caught.value)
    # The advice works.
    advised = package.UserFactorization(epsilon=1.0, feedback="implicit")
    assert advised.fit(frame, catalog=["jam", "tea"], max_per_user=2).catalog.ids.tolist() == ["jam", "tea"]


def test_similar_items_names_what_it_has_no_use_for(model):
    item = model.catalog.ids.tolist()[0]
    with refuses("similar-items-has-no", given=["N"]):
        model.similar_items(item, N=5)
