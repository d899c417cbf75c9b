"""`discreet campaign new`: say what is asked, of what, and how it is perturbed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.checks import ParameterError
from discreet.commands.options.declared import AsJson, Force
from discreet.commands.options.parsing import parse_number, parse_scale, read_items
from discreet.commands.output.campaign import tell
from discreet.files import refuse_output, write_whole

if TYPE_CHECKING:
    from discreet.collect.opening import AnyCampaign

# Grid points of a report: one byte, and the usual steps of rating scales fall on points.
_POINTS = 241


def new(
    out: Annotated[Path, typer.Option("--out", help="Where to write the campaign.")],
    items: Annotated[Path, typer.Option("--items", help="What is asked about: one item a line.")],
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", help="What one answer may reveal.", parser=parse_number, metavar="FLOAT"),
    ],
    name: Annotated[str, typer.Option("--name", help="What people see it called.")],
    scale: Annotated[str, typer.Option("--scale", help="LOW,HIGH or LOW,HIGH,STEP.")] = "1,5,1",
    max_reports: Annotated[int, typer.Option("--max-reports", help="The most answers of one person.")] = 20,
    hide_items: Annotated[
        bool,
        typer.Option("--hide-items", help="Hide also what was rated: devices answer for the whole catalog."),
    ] = False,
    answers: Annotated[
        int | None,
        typer.Option("--answers", help="With --hide-items: ask each device about so many items only."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a campaign: what is asked, of what, and how it is perturbed."""
    from discreet.collect.opening import KIND, is_campaign

    refuse_output(out, force=force, kind=KIND, is_ours=is_campaign, inputs=[items])
    made = _made(name, items, epsilon, parse_scale(scale), None if hide_items else max_reports, answers)
    write_whole(out, made.to_bytes())
    tell(made, as_json, f"Written to {out}.")


def _made(
    name: str,
    items: Path,
    epsilon: float,
    scale: tuple[float | None, float | None, float | None],
    max_reports: int | None,
    answers: int | None,
) -> AnyCampaign:
    from discreet.collect.catalog.campaign import CatalogCampaign
    from discreet.collect.catalog.choosing import cell_mechanism
    from discreet.collect.ratings.campaign import Campaign
    from discreet.data.facts import PublicFacts
    from discreet.privacy.mechanisms.bounded import BoundedLaplace
    from discreet.privacy.mechanisms.cells import HiddenNumbers, HiddenStars

    catalog = read_items(items)
    low, high, step = scale
    assert low is not None and high is not None
    if max_reports is not None:
        if answers is not None:
            raise ParameterError("--answers goes with --hide-items; otherwise say --max-reports.")
        mechanism = BoundedLaplace(epsilon=epsilon, low=low, high=high, points=_POINTS)
        return Campaign(name=name, mechanism=mechanism, catalog=catalog, max_reports=max_reports, step=step)
    cells = cell_mechanism(epsilon, PublicFacts(n_items=len(catalog), low=low, high=high, step=step))
    if not isinstance(cells, HiddenStars | HiddenNumbers):
        raise ParameterError("A campaign needs a finite epsilon.")
    return CatalogCampaign(name=name, mechanism=cells, catalog=catalog, answers=answers)
