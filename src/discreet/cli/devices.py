"""A whole collection in one process: one device per user, messages as bytes, and a collector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from discreet.collect.campaign import Campaign
    from discreet.collect.gradient_rounds import GradientCampaign
    from discreet.collect.hidden_items import CatalogCampaign
    from discreet.data.interactions import Interactions
    from discreet.models.fitted import FittedModel


class SimulatedCollection(NamedTuple):
    """The model of a simulated collection, and what devices sent for it."""

    model: FittedModel
    devices: int
    messages: int
    sent_bytes: int

    def counts(self) -> dict[str, int]:
        """Return the counts by name."""
        return {"devices": self.devices, "messages": self.messages, "sent_bytes": self.sent_bytes}


def campaign_model(found: SimulatedCollection) -> str:
    """Return the name of the model."""
    return found.model.name


def simulated_devices(
    file: Path, data: Interactions, model: str | None, settings: Sequence[str]
) -> SimulatedCollection:
    """Answer a campaign with the devices of all users, and learn from their messages."""
    from discreet.collect.campaign import Campaign
    from discreet.collect.gradient_rounds import GradientCampaign
    from discreet.collect.opening import open_campaign
    from discreet.privacy.assumptions import Fact, Kind, assumptions_of

    campaign = open_campaign(file)
    if isinstance(campaign, GradientCampaign):
        found = _rounds(campaign, data)
    else:
        play = _ratings if isinstance(campaign, Campaign) else _catalog
        found = play(campaign, data, model, settings)  # type: ignore[arg-type]
    # This process read the file with all ratings. The threshold of a like follows from the scale, which may
    # come from that file.
    guarantee = found.model.guarantee.from_raw_ratings()
    taken = [one for one in assumptions_of(data.facts) if (one.kind, one.fact) == (Kind.TAKEN, Fact.SCALE)]
    for one in taken:
        guarantee = guarantee.assuming(one)
    return found._replace(model=replace(found.model, guarantee=guarantee))


def _ratings(
    campaign: Campaign, data: Interactions, model: str | None, settings: Sequence[str]
) -> SimulatedCollection:
    from discreet.collect.collector import Collector
    from discreet.collect.device import Device
    from discreet.models.scorers.one_bit import binary_ratings, public_threshold
    from discreet.service.refitting import usual_model

    one_bit = campaign.mechanism.channel().outputs.size == 2
    if one_bit:
        liked = (binary_ratings(data, public_threshold(data.facts, None)) + 1) / 2
        data = data.with_values(liked, facts=replace(data.facts, low=0.0, high=1.0, step=1.0))
    capped = data.with_facts(replace(data.facts, max_per_user=campaign.max_reports)).bounded()
    collector = Collector(campaign)
    budget = campaign.for_person(campaign.max_reports).epsilon
    sent = 0
    for history in _histories(capped):
        message = Device(campaign, budget=budget).message(history)
        collector.receive(message)
        sent += len(message)
    fitted = _learned(collector.collected(), model or usual_model(campaign), settings)
    return SimulatedCollection(fitted, capped.n_users, capped.n_users, sent)


def _catalog(
    campaign: CatalogCampaign, data: Interactions, model: str | None, settings: Sequence[str]
) -> SimulatedCollection:
    from discreet.collect.collector import CatalogCollector
    from discreet.collect.device import CatalogDevice
    from discreet.service.refitting import usual_model

    collector, budget, sent = CatalogCollector(campaign), campaign.for_person().epsilon, 0
    for history in _histories(data):
        message = CatalogDevice(campaign, budget=budget).message(history)
        collector.receive(message)
        sent += len(message)
    fitted = _learned(collector.collected(), model or usual_model(campaign), settings)
    return SimulatedCollection(fitted, data.n_users, data.n_users, sent)


def _rounds(campaign: GradientCampaign, data: Interactions) -> SimulatedCollection:
    from discreet.collect.gradient_device import GradientDevice
    from discreet.papers.mixture.gradient_server import GradientServer

    server = GradientServer(campaign)
    devices = [GradientDevice(campaign, history, budget=campaign.epsilon) for history in _histories(data)]
    sent = 0
    while not server.finished:
        question = server.question()
        for device in devices:
            answer = device.answer(question)
            server.receive(answer)
            sent += len(answer)
        server.close_round()
    return SimulatedCollection(server.model(), len(devices), len(devices) * campaign.rounds, sent)


def _histories(data: Interactions) -> Iterator[dict[Any, float]]:
    """Return the ratings of each user by item."""
    for user in range(data.n_users):
        span = slice(int(data.indptr[user]), int(data.indptr[user + 1]))
        items = data.catalog.id_at(data.items[span]).tolist()
        yield dict(zip(items, data.values[span].tolist(), strict=True))


def _learned(collected: Any, model: str, settings: Sequence[str]) -> FittedModel:
    """Return the model of reports."""
    from discreet.recipes import parse_settings
    from discreet.service.refitting import fit_reports

    return fit_reports(collected, model, parse_settings(model, settings))
