"""`discreet campaign`: create, show, check, and close a collection campaign."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.errors import OldCampaign, OptionNeeds
from discreet.cli.options.declared import AsJson, Data, Force, Reading
from discreet.cli.options.parsing import parse_number, parse_scale, read_items
from discreet.cli.output import printing
from discreet.cli.output.printing import emit
from discreet.collect.errors import InteractionsNeedHiding
from discreet.core.checks import one_of
from discreet.core.errors import OutOfRange
from discreet.core.files import refuse_output, write_whole

if TYPE_CHECKING:
    from discreet.collect.blind_signatures import BlindPublicKey
    from discreet.collect.campaign import Campaign
    from discreet.collect.hidden_items import CatalogCampaign
    from discreet.collect.opening import AnyCampaign

Scale = tuple[float | None, float | None, float | None]
ONE_BIT = "one-bit"
RATING_MECHANISMS = ("bounded-laplace", "clamped-laplace")
# The number of values a report can have: it fits one byte, and usual rating scales fall on these values.
_POINTS = 241


def new(
    out: Annotated[Path, typer.Option("--out", help="Where to write the campaign.")],
    items: Annotated[
        Path, typer.Option("--items", help="The items to ask about: one id per line, or a table of items.")
    ],
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon", help="The privacy loss of one answer.", parser=parse_number, metavar="FLOAT"
        ),
    ],
    name: Annotated[str, typer.Option("--name", help="The name that users see.")],
    scale: Annotated[
        str, typer.Option("--scale", help="The rating scale: LOW,HIGH or LOW,HIGH,STEP.")
    ] = "1,5,1",
    max_reports: Annotated[int, typer.Option("--max-reports", help="The most answers per user.")] = 20,
    hide_items: Annotated[
        bool,
        typer.Option(
            "--hide-items",
            help="Also hide which items were rated: devices answer for every item of the catalog.",
        ),
    ] = False,
    mechanism: Annotated[
        str,
        typer.Option(
            "--mechanism",
            help="The noise on the value of a rating: bounded-laplace, clamped-laplace (ISGD), or one-bit, "
            "which asks for likes and dislikes and flips them.",
        ),
    ] = "bounded-laplace",
    implicit: Annotated[
        bool,
        typer.Option("--implicit", help="With --hide-items: ask for interactions, one bit for each item."),
    ] = False,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            help="Ask each device for one bit in this many rounds (PG-MF). --epsilon is per user.",
        ),
    ] = None,
    answers: Annotated[
        int | None,
        typer.Option("--answers", help="With --hide-items: ask each device about this many items only."),
    ] = None,
    invited: Annotated[
        Path | None,
        typer.Option(
            "--invited",
            help="Accept reports of invited devices only. This file gets the key that signs their tokens.",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Create a campaign file: the items, the rating scale, and the noise."""
    from discreet.collect.opening import KIND, is_campaign

    refuse_output(out, force=force, kind=KIND, is_ours=is_campaign, inputs=[items])
    if rounds is not None:
        _write_rounds(out, name, items, epsilon, parse_scale(scale), rounds, as_json=as_json)
        return
    scaled = _scale(scale, mechanism, implicit=implicit, hide_items=hide_items)
    made = _made(name, items, epsilon, scaled, None if hide_items else max_reports, answers, mechanism)
    if invited is not None:
        made = replace(made, invitations=_new_key(invited, [items, out]))
    write_whole(out, made.to_bytes())
    show_campaign(made, as_json, f"Written to {out}.")


def _scale(text: str, mechanism: str, *, implicit: bool, hide_items: bool) -> Scale:
    """Return the scale of a campaign: as declared, 0 and 1 for one bit, and 1 for interactions."""
    one_of("--mechanism", mechanism, (*RATING_MECHANISMS, ONE_BIT))
    if implicit and not hide_items:
        raise InteractionsNeedHiding
    if implicit:
        return 1.0, 1.0, None
    return (0.0, 1.0, 1.0) if mechanism == ONE_BIT else parse_scale(text)


def _write_rounds(
    out: Path, name: str, items: Path, epsilon: float, scale: Scale, rounds: int, *, as_json: bool
) -> None:
    """Write a campaign of rounds, and print its guarantee."""
    from discreet.collect.gradient_rounds import GradientCampaign

    low, high, _ = scale
    assert low is not None and high is not None
    made = GradientCampaign(
        name=name, epsilon=epsilon, catalog=read_items(items), low=low, high=high, rounds=rounds
    )
    write_whole(out, made.to_bytes())
    show_campaign(made, as_json, f"Written to {out}.")


def _new_key(path: Path, others: list[Path]) -> BlindPublicKey:
    """Write a new key of invitations, and return its public half."""
    from discreet.collect.blind_signatures import BlindSigningKey

    # Never replaced: the invitations of another campaign may need it.
    refuse_output(path, force=False, kind="key of invitations", is_ours=lambda _: False, inputs=others)
    key = BlindSigningKey.new()
    write_whole(path, key.to_pem(), private=True)
    return key.public


def _made(
    name: str,
    items: Path,
    epsilon: float,
    scale: Scale,
    max_reports: int | None,
    answers: int | None,
    mechanism: str,
) -> Campaign | CatalogCampaign:
    from discreet.collect.campaign import Campaign
    from discreet.collect.hidden_items import CatalogCampaign, cell_mechanism
    from discreet.data.facts import PublicFacts
    from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars
    from discreet.privacy.mechanisms.local import rating_mechanism

    catalog = read_items(items)
    low, high, step = scale
    assert low is not None and high is not None
    if max_reports is not None:
        if answers is not None:
            raise OptionNeeds(
                options=("--answers",),
                needs="--hide-items",
                why="without it, --max-reports limits the reports of a device",
            )
        # Bounded noise on a scale of two points is a flip with probability 1 / (1 + e^epsilon).
        noise, points = ("bounded-laplace", 2) if mechanism == ONE_BIT else (mechanism, _POINTS)
        made = rating_mechanism(noise, epsilon=epsilon, low=low, high=high, points=points)
        return Campaign(name=name, mechanism=made, catalog=catalog, max_reports=max_reports, step=step)
    cells = cell_mechanism(epsilon, PublicFacts(n_items=len(catalog), low=low, high=high, step=step))
    if not isinstance(cells, HiddenStars | HiddenNumbers):
        raise OutOfRange(name="epsilon", value=epsilon, above=0, below=math.inf)
    return CatalogCampaign(name=name, mechanism=cells, catalog=catalog, answers=answers)


def show(file: Annotated[Path, typer.Argument(help="A campaign file.")], as_json: AsJson = False) -> None:
    """Show what a campaign asks, and its guarantee."""
    from discreet.collect.opening import open_campaign

    show_campaign(open_campaign(file), as_json)


def check(file: Annotated[Path, typer.Argument(help="A campaign file.")], as_json: AsJson = False) -> None:
    """Recompute a campaign's privacy loss from its tables. Exit with 1 if it exceeds the guarantee."""
    from discreet.collect.draw_tables import reported_loss
    from discreet.collect.errors import NoTables
    from discreet.collect.gradient_rounds import GradientCampaign
    from discreet.collect.opening import open_campaign

    campaign = open_campaign(file)
    if isinstance(campaign, GradientCampaign):
        raise NoTables
    record = campaign.to_json()
    if "draws" not in record:
        raise OldCampaign()
    loss, epsilon = reported_loss(record["draws"]), campaign.mechanism.epsilon
    if as_json:
        emit({**facts_of(campaign), "largest_log_ratio": loss})
    else:
        printing.show(f"The tables of {file} have epsilon {loss:.12g}; the campaign guarantees {epsilon:g}.")


def close(
    store: Annotated[
        str, typer.Argument(help="Where the reports are: sqlite:///FILE, postgresql://..., or a file.")
    ],
    as_json: AsJson = False,
) -> None:
    """Close a collection: it accepts no more reports, and a running service stops accepting them."""
    from discreet.service.stores.opening import open_store

    kept = open_store(store)
    kept.close_collection()
    kept.rewrite()
    counts = kept.counts()
    kept.dispose()
    if as_json:
        emit({"closed": True, **counts._asdict()})
    else:
        printing.show(f"Closed with {counts.reports:,} reports of {counts.senders:,} senders.")


def simulate(
    file: Annotated[Path, typer.Argument(help="A campaign file.")],
    data: Data,
    reading: Reading,
    out: Annotated[Path, typer.Option("--out", help="Where to write the model.")],
    model: Annotated[
        str | None, typer.Option("--model", help="The model. Default: that of the campaign's mechanism.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Set an option of the model: key=value. May be repeated."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Answer a campaign with one device per user of DATA, collect the messages, and learn from them.

    All devices run in this process, with real noise. This process reads DATA, and the label states that.
    """
    from discreet.cli.devices import campaign_model, simulated_devices
    from discreet.models.storage import KIND, is_model

    refuse_output(out, force=force, kind=KIND, is_ours=is_model, inputs=[file, *reading.files()])
    found = simulated_devices(file, reading.load(data, None), model, settings or [])
    found.model.save(out, force=force)
    if as_json:
        guarantee = found.model.guarantee.to_json()
        emit({**found.counts(), "model": campaign_model(found), "file": str(out), "guarantee": guarantee})
        return
    printing.show(
        f"{found.devices:,} devices sent {found.messages:,} messages, {found.sent_bytes:,} bytes. "
        f"Written to {out}. {found.model.guarantee.short()}"
    )


def facts_of(campaign: AnyCampaign) -> dict[str, Any]:
    """Return the facts of a campaign as JSON."""
    from discreet.collect.campaign import Campaign
    from discreet.collect.gradient_rounds import GradientCampaign

    if isinstance(campaign, GradientCampaign):
        kind, person = "gradients", campaign.guarantee()
    elif isinstance(campaign, Campaign):
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
        "invited": campaign.invitations is not None,
        **({"rounds": campaign.rounds} if isinstance(campaign, GradientCampaign) else {}),
    }


def show_campaign(campaign: AnyCampaign, as_json: bool, last: str = "") -> None:
    """Print what a campaign asks and guarantees, and a last sentence."""
    if as_json:
        emit(facts_of(campaign))
        return
    from discreet.report.label import label_table

    facts = facts_of(campaign)
    printing.show(
        label_table(campaign.guarantee(), f"Privacy facts: {campaign.name}"),
        f"{facts['items']:,} items. For a user who gives all answers, epsilon is "
        f"{facts['person_epsilon']:g}. {campaign.guarantee().short()}",
        f"Its digest is {facts['digest']}. {last}".strip(),
        *(["Only invited devices may send."] if facts["invited"] else []),
        *([f"{facts['rounds']:,} rounds, one bit per device and round."] if "rounds" in facts else []),
    )
