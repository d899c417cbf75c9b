"""`discreet campaign`: create, show, check and close a collection campaign."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.options.declared import AsJson, Force
from discreet.cli.options.parsing import parse_number, parse_scale, read_items
from discreet.cli.output import printing
from discreet.cli.output.printing import emit
from discreet.core.checks import ParameterError
from discreet.core.files import refuse_output, write_whole

if TYPE_CHECKING:
    from discreet.collect.blind_signatures import BlindPublicKey
    from discreet.collect.opening import AnyCampaign

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
    name: Annotated[str, typer.Option("--name", help="The name that people see.")],
    scale: Annotated[
        str, typer.Option("--scale", help="The rating scale: LOW,HIGH or LOW,HIGH,STEP.")
    ] = "1,5,1",
    max_reports: Annotated[int, typer.Option("--max-reports", help="The most answers per person.")] = 20,
    hide_items: Annotated[
        bool,
        typer.Option(
            "--hide-items",
            help="Also hide which items were rated: devices answer for every item of the catalog.",
        ),
    ] = False,
    answers: Annotated[
        int | None,
        typer.Option("--answers", help="With --hide-items: ask each device about this many items only."),
    ] = None,
    invited: Annotated[
        Path | None,
        typer.Option(
            "--invited",
            help="Take reports of invited devices only. This file gets the key that signs their tokens.",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Create a campaign file: the items, the rating scale and the noise."""
    from discreet.collect.opening import KIND, is_campaign

    refuse_output(out, force=force, kind=KIND, is_ours=is_campaign, inputs=[items])
    made = _made(name, items, epsilon, parse_scale(scale), None if hide_items else max_reports, answers)
    if invited is not None:
        made = replace(made, invitations=_new_key(invited, [items, out]))
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
    scale: tuple[float | None, float | None, float | None],
    max_reports: int | None,
    answers: int | None,
) -> AnyCampaign:
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
            raise ParameterError("--answers needs --hide-items. Without it, use --max-reports.")
        mechanism = rating_mechanism("bounded-laplace", epsilon=epsilon, low=low, high=high, points=_POINTS)
        return Campaign(name=name, mechanism=mechanism, catalog=catalog, max_reports=max_reports, step=step)
    cells = cell_mechanism(epsilon, PublicFacts(n_items=len(catalog), low=low, high=high, step=step))
    if not isinstance(cells, HiddenStars | HiddenNumbers):
        raise ParameterError("A campaign needs a finite epsilon. Give one with --epsilon.")
    return CatalogCampaign(name=name, mechanism=cells, catalog=catalog, answers=answers)


def show(file: Annotated[Path, typer.Argument(help="A campaign file.")], as_json: AsJson = False) -> None:
    """Show what a campaign asks and promises."""
    from discreet.collect.opening import open_campaign

    show_campaign(open_campaign(file), as_json)


def check(file: Annotated[Path, typer.Argument(help="A campaign file.")], as_json: AsJson = False) -> None:
    """Recompute a campaign's privacy loss from its tables. Exit with 1 if it exceeds the promise."""
    from discreet.collect.draw_tables import reported_loss
    from discreet.collect.opening import open_campaign

    campaign = open_campaign(file)
    record = campaign.to_json()
    if "draws" not in record:
        raise ParameterError("This campaign has format version 1, which has no tables. Create it again.")
    loss, epsilon = reported_loss(record["draws"]), campaign.mechanism.epsilon
    if as_json:
        emit({**facts_of(campaign), "largest_log_ratio": loss})
    else:
        printing.show(f"The tables of {file} have epsilon {loss:.12g}; the campaign promises {epsilon:g}.")


def close(
    store: Annotated[
        str, typer.Argument(help="Where the reports are: sqlite:///FILE, postgresql://... or a file.")
    ],
    as_json: AsJson = False,
) -> None:
    """Close a collection: no more reports are accepted, also by a running service."""
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


def facts_of(campaign: AnyCampaign) -> dict[str, Any]:
    """Return the facts of a campaign as JSON."""
    from discreet.collect.campaign import Campaign

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
        "invited": campaign.invitations is not None,
    }


def show_campaign(campaign: AnyCampaign, as_json: bool, last: str = "") -> None:
    """Print what a campaign asks and promises, and a last sentence."""
    if as_json:
        emit(facts_of(campaign))
        return
    from discreet.report.label import label_table

    facts = facts_of(campaign)
    printing.show(
        label_table(campaign.guarantee(), f"Privacy facts: {campaign.name}"),
        f"{facts['items']:,} items. For a person who gives all answers, epsilon is "
        f"{facts['person_epsilon']:g}. {campaign.guarantee().short()}",
        f"Its digest is {facts['digest']}. {last}".strip(),
        *(["Only invited devices may send."] if facts["invited"] else []),
    )
