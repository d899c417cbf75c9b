"""A web shop: learn from ratings under a yearly budget, save the model, and serve everybody's lists."""

import tempfile
from pathlib import Path

import discreet

folder = Path(tempfile.mkdtemp())
data = discreet.catalog.load("discreet-demo")  # your own: discreet.read("ratings.csv", low=1, high=5, step=1)

with discreet.Ledger.open(folder / "shop.ledger") as ledger:
    year = discreet.Guarantee(
        epsilon=2.0,
        delta=1e-5,
        unit=discreet.Unit.USER,
        neighbors=discreet.Neighbors.ADD_OR_REMOVE,
        trust=discreet.Trust.JOINT,
        basis=discreet.Basis.PROVED,
    )
    ledger.set_budget(data.name, year)
    model = discreet.UserFactorization(epsilon=1.0).fit(data, ledger=ledger)
    print("left for the rest of the year:", ledger.remaining(data.name))

model.save(folder / "shop.discreet")
print(model.guarantee.label())

served = discreet.load(folder / "shop.discreet")
lists = served.recommend_all(data.select_users(range(100)), k=5)
lists.write_csv(folder / "lists.csv")
print(lists.head(5))
