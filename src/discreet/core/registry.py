"""Register estimators and data sources by name and location, without importing them.

`discreet.recipes` looks estimators up here, and shells complete names from here.
"""

from __future__ import annotations

#: Functions that open a path as a data source; each returns None if the path is not of its kind.
SOURCES = {"shards": "discreet.distributed.shards:open_if_shards"}

ESTIMATORS = {
    "user-factorization": "discreet.models.user_factorization.estimator:UserFactorization",
    "biases": "discreet.models.biases:Biases",
    "implicit-objective": "discreet.models.implicit.objective:ImplicitObjective",
    "neighbours": "discreet.models.local.neighbors:ItemNeighbors",
    "popularity": "discreet.models.popularity:Popularity",
    "als": "discreet.models.baselines.als:Als",
    "implicit-als": "discreet.models.baselines.implicit_als:ImplicitAls",
    "ease": "discreet.models.baselines.item_item:Ease",
    "item-knn": "discreet.models.baselines.item_item:ItemKnn",
    "frank-wolfe": "discreet.models.low_rank.frank_wolfe:FrankWolfe",
    "frank-wolfe-printed": "discreet.models.low_rank.printed_frank_wolfe:PrintedFrankWolfe",
    "covariance-svd": "discreet.models.low_rank.covariance_svd:CovarianceSvd",
    "projected-gradient": "discreet.models.low_rank.projected_gradient:ProjectedGradient",
    "one-bit-input": "discreet.models.one_bit.estimators:OneBitInput",
    "one-bit-objective": "discreet.models.one_bit.estimators:OneBitObjective",
    "one-bit-gradient": "discreet.models.one_bit.estimators:OneBitGradient",
    "one-bit-output": "discreet.models.one_bit.estimators:OneBitOutput",
    "local-channel": "discreet.models.local.channel:LocalChannel",
    "local-mixture": "discreet.models.local.mixture:LocalMixture",
    "local-nuclear": "discreet.models.local.nuclear:LocalNuclear",
    "local-nuclear-plain": "discreet.models.local.nuclear:LocalNuclearPlain",
    "local-sgd": "discreet.models.local.sgd:LocalSgd",
    "private-gradients": "discreet.models.local.private_gradients:PrivateGradients",
}
