"""Learn with parties that keep their data: in rounds, each sends a noisy answer, and answers are summed."""

from __future__ import annotations

from discreet.core.exports import Exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from discreet.federated.comparison import compare_parties as compare_parties
    from discreet.federated.coordinator import Coordinator as Coordinator
    from discreet.federated.coordinator import RunOutcome as RunOutcome
    from discreet.federated.keeper import Keeper as Keeper
    from discreet.federated.noise import OwnNoise as OwnNoise
    from discreet.federated.noise import SharedNoise as SharedNoise
    from discreet.federated.party import Party as Party
    from discreet.federated.protocols.averaged_items import AveragedItems as AveragedItems
    from discreet.federated.protocols.averaged_users import AveragedUsers as AveragedUsers
    from discreet.federated.protocols.estimator_sums import EstimatorSums as EstimatorSums
    from discreet.federated.protocols.estimator_sums import protocol_for as protocol_for
    from discreet.federated.protocols.summed import SummedStatistics as SummedStatistics
    from discreet.federated.simulation import simulate_parties as simulate_parties
    from discreet.federated.transport import InProcess as InProcess
    from discreet.federated.transport import Transport as Transport
    from discreet.federated.wire import FederationError as FederationError
else:
    _exports = Exports(
        "discreet.federated",
        {
            "discreet.federated.coordinator": "Coordinator RunOutcome",
            "discreet.federated.party": "Party",
            "discreet.federated.keeper": "Keeper",
            "discreet.federated.noise": "OwnNoise SharedNoise",
            "discreet.federated.protocols.estimator_sums": "EstimatorSums protocol_for",
            "discreet.federated.protocols.summed": "SummedStatistics",
            "discreet.federated.simulation": "simulate_parties",
            "discreet.federated.comparison": "compare_parties",
            "discreet.federated.protocols.averaged_items": "AveragedItems",
            "discreet.federated.protocols.averaged_users": "AveragedUsers",
            "discreet.federated.transport": "InProcess Transport",
            "discreet.federated.wire": "FederationError",
        },
    )
    __all__ = _exports.names
    __getattr__ = _exports.find

    def __dir__() -> list[str]:
        return __all__
