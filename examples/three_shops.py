"""Three shops learn one model; no shop shows its customers to the others or to the coordinator."""

import numpy as np

from discreet import ImplicitObjective, Ledger
from discreet.data.datasets.synthetic import popularity_skewed
from discreet.federated import Coordinator, InProcess, Keeper, Party, SharedNoise, protocol_for

data = popularity_skewed(n_users=1500, n_items=120, mean_per_user=25)
model = ImplicitObjective(epsilon=4.0, delta=1e-6)
protocol = protocol_for(model, data.facts, SharedNoise(parties=3, missing=0))
names = ["books", "films", "games"]
keeper = Keeper(roster=names, least=protocol.noise.least_parties)
shops = {
    name: Party(
        name,
        data.select_users(np.arange(place, data.n_users, 3)),
        protocol,
        run="spring",
        ledger=Ledger.in_memory(),  # in earnest a file: Ledger.open("books.ledger")
        keeper=keeper,
    )
    for place, name in enumerate(names)
}
coordinator = Coordinator(
    protocol,
    InProcess({name: shop.answer for name, shop in shops.items()}),
    parties=names,
    shared=data.catalog,
    run="spring",
    keeper=keeper,
)
outcome = coordinator.train(data.facts)
print(outcome.model.guarantee.sentence())
print(outcome.model.recommend([data.catalog.id_at(0)], k=3))
