"""Clicks: recommend from choices alone, and say why."""

import polars as pl

import discreet

films = discreet.catalog.load("discreet-demo")
clicks = pl.DataFrame(
    {"user": films.users.id_at(films.rows()).tolist(), "item": films.catalog.id_at(films.items).tolist()}
)

estimator = discreet.UserFactorization(epsilon=1.0, feedback="implicit")
model = estimator.fit(clicks)  # a data frame of pandas, polars or pyarrow

chosen = ["Return of the Satellite", "Night of the Missing Witness"]
for film, score in model.recommend(chosen, k=3):
    because, _ = model.explain(chosen, film)[0]
    print(f"{film} ({score:.2f}), most of all because of {because}")
