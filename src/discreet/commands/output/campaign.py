"""What a campaign asks and promises, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.commands.output.printing import emit, show

if TYPE_CHECKING:
    from discreet.collect.opening import AnyCampaign


def facts_of(campaign: AnyCampaign) -> dict[str, Any]:
    """Return what a program wants to know of a campaign."""
    from discreet.collect.ratings.campaign import Campaign

    if isinstance(campaign, Campaign):
        kind, person = "ratings", campaign.for_person(campaign.max_reports)
    else:
        kind, person = "catalog", campaign.for_person()
    return {
        "name": campaign.name,
        "digest": campaign.digest.hex(),
        "kind": kind,
        "items": len(campaign.catalog),
        "guarantee": campaign.guarantee().to_json(),
        "person_epsilon": person.epsilon,
    }


def tell(campaign: AnyCampaign, as_json: bool, last: str = "") -> None:
    """Print what a campaign asks and promises."""
    if as_json:
        emit(facts_of(campaign))
        return
    from discreet.commands.output.label import label_table

    facts = facts_of(campaign)
    show(
        label_table(campaign.guarantee(), f"Privacy facts: {campaign.name}"),
        f"{facts['items']:,} items. A person who answers all that is asked reveals at most "
        f"{facts['person_epsilon']:g}. {campaign.guarantee().sentence()}",
        f"Its name is {facts['digest']}. {last}".strip(),
    )
