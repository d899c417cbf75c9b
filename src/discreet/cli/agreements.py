"""The text of an agreement between parties: a model, and the protocol if parties average."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet import recipes

if TYPE_CHECKING:
    from discreet.federated.identity.agreement import Agreement
    from discreet.federated.protocols.choosing import Way
    from discreet.federated.protocols.protocol import ItemProtocol
    from discreet.models.estimator import Estimator

_AVERAGES = 'protocol = "averages"\n'


def to_recipe(estimator: Estimator, way: Way) -> str:
    """Return the text of an agreement that names a model and a protocol."""
    return (_AVERAGES if way == "averages" else "") + recipes.to_toml(estimator)


def agreed_protocol(agreement: Agreement) -> tuple[Estimator, ItemProtocol]:
    """Return the model and the protocol that the members of a federation agreed on."""
    from discreet.federated.protocols.choosing import item_protocol

    text = agreement.recipe
    estimator = recipes.from_toml(text.removeprefix(_AVERAGES))
    way: Way = "averages" if text.startswith(_AVERAGES) else "sums"
    return estimator, item_protocol(estimator, agreement.facts, agreement.noise, way)
