"""`discreet campaign`: create and close a collection, try it in one process, and learn from its reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from discreet.cli import lib
from discreet.cli.errors import OldCampaign, OptionNeeds
from discreet.cli.options.declared import Data, Epsilon, Force, Reading
from discreet.cli.options.parsing import parse_scale, read_items
from discreet.cli.output.printing import Output
from discreet.collect.errors import InteractionsNeedHiding
from discreet.core import OutOfRange, begun_path, integer, one_of, refuse_output, write_whole
from discreet.core.checks import DiscreetError

Scale = tuple[float | None, float | None, float | None]
ONE_BIT = "one-bit"
RATING_MECHANISMS = ("bounded-laplace", "clamped-laplace")
# The number of values a report can have: it fits one byte, and usual rating scales fall on these values.
_POINTS = 241


def new(
    *,
    out: Path,
    items: Path,
    epsilon: Epsilon,
    name: str,
    scale: str = "1,5,1",
    max_reports: int = 20,
    hide_items: bool = False,
    mechanism: str = "bounded-laplace",
    implicit: bool = False,
    rounds: int | None = None,
    answers: int | None = None,
    invited: Path | None = None,
    force: Force = False,
) -> Output:
    """Create a campaign file: the items, the rating scale, and the noise.

    Options:
        out: Where to write the campaign.
        items: The items to ask about: one ID per line, or a table of items.
        epsilon: The privacy loss of one answer.
        name: The name that users see.
        scale: The rating scale: LOW,HIGH or LOW,HIGH,STEP.
        max_reports: Maximum number of answers per user.
        hide_items: Also hide which items were rated: devices answer for every item of the catalog.
        mechanism: The noise on the value of a rating: bounded-laplace, clamped-laplace (ISGD), or one-bit,
            which asks for likes and dislikes and flips them.
        implicit: With --hide-items: ask for interactions, one bit for each item.
        rounds: Ask each device for one bit in this many rounds (PG-MF). --epsilon is per user.
        answers: With --hide-items: ask each device about this many items only.
        invited: Accept reports of invited devices only. This file gets the key that signs their tokens.
    """
    refuse_output(out, force=force, kind=lib.CAMPAIGN_KIND, is_ours=lib.is_campaign, inputs=[items])
    if rounds is not None:
        return _write_rounds(out, name, items, epsilon, parse_scale(scale), rounds)
    scaled = _scale(scale, mechanism, implicit=implicit, hide_items=hide_items)
    made = _made(name, items, epsilon, scaled, None if hide_items else max_reports, answers, mechanism)
    if invited is None:
        write_whole(out, made.to_bytes())
    else:
        made = replace(made, invitations=_new_key(invited, made, out, items))
        begun_path(out).replace(out)
    return about(made, f"Written to {out}.")


def _scale(text: str, mechanism: str, *, implicit: bool, hide_items: bool) -> Scale:
    """Return the scale of a campaign: as declared, 0 and 1 for one bit, and 1 for interactions."""
    one_of("--mechanism", mechanism, (*RATING_MECHANISMS, ONE_BIT))
    if implicit and not hide_items:
        raise InteractionsNeedHiding
    if implicit:
        return 1.0, 1.0, None
    return (0.0, 1.0, 1.0) if mechanism == ONE_BIT else parse_scale(text)


def _write_rounds(out: Path, name: str, items: Path, epsilon: float, scale: Scale, rounds: int) -> Output:
    """Write a campaign of rounds, and return its guarantee."""
    low, high, _ = scale
    assert low is not None and high is not None
    made = lib.GradientCampaign(
        name=name, epsilon=epsilon, catalog=read_items(items), low=low, high=high, rounds=rounds
    )
    write_whole(out, made.to_bytes())
    return about(made, f"Written to {out}.")


def _new_key(
    path: Path, made: lib.Campaign | lib.CatalogCampaign, out: Path, items: Path
) -> lib.BlindPublicKey:
    """Write a campaign next to its output, then the key of its invitations; return the key's public half."""
    begun = begun_path(out)
    if path.is_file() and begun.is_file():
        # The same command was killed between its two files: the key belongs to the campaign next to `out`.
        known = lib.BlindSigningKey.from_pem(path.read_bytes()).public
        if begun.read_bytes() == replace(made, invitations=known).to_bytes():
            return known
    # Never replaced: the invitations of another campaign may need it.
    refuse_output(path, force=False, kind="key of invitations", is_ours=lambda _: False, inputs=[items, out])
    key = lib.BlindSigningKey.new()
    write_whole(begun, replace(made, invitations=key.public).to_bytes())
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
) -> lib.Campaign | lib.CatalogCampaign:
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
        made = lib.rating_mechanism(noise, epsilon=epsilon, low=low, high=high, points=points)
        return lib.Campaign(name=name, mechanism=made, catalog=catalog, max_reports=max_reports, step=step)
    cells = lib.cell_mechanism(epsilon, lib.PublicFacts(n_items=len(catalog), low=low, high=high, step=step))
    if not isinstance(cells, lib.HiddenStars | lib.HiddenNumbers):
        raise OutOfRange(name="epsilon", value=epsilon, above=0, below=math.inf)
    return lib.CatalogCampaign(name=name, mechanism=cells, catalog=catalog, answers=answers)


def show(file: Path) -> Output:
    """Show what a campaign asks, and its guarantee.

    Options:
        file: A campaign file.
    """
    return about(lib.open_campaign(file))


def check(file: Path) -> Output:
    """Recompute a campaign's privacy loss from its tables. Exit with 1 if it exceeds the guarantee.

    Options:
        file: A campaign file.
    """
    campaign = lib.open_campaign(file)
    if isinstance(campaign, lib.GradientCampaign):
        raise lib.NoTables
    record = campaign.to_json()
    if "draws" not in record:
        raise OldCampaign()
    loss, epsilon = lib.reported_loss(record["draws"]), campaign.mechanism.epsilon
    return Output(
        {**facts_of(campaign), "largest_log_ratio": loss},
        f"The tables of {file} have epsilon {loss:.12g}; the campaign guarantees {epsilon:g}.",
    )


def close(store: str) -> Output:
    """Close a collection: it accepts no more reports, and a running service stops accepting them.

    Options:
        store: Where the reports are: sqlite:///FILE, postgresql://..., or a file.
    """
    with closing(lib.open_store(store)) as kept:
        kept.close_collection()
        kept.rewrite()
        counts = kept.counts()
    return Output({"closed": True, **counts._asdict()}, f"Closed with {_said(counts)}.")


def _said(counts: lib.Counts) -> str:
    return f"{counts.reports:,} reports of {counts.senders:,} senders"


def simulate(
    file: Path,
    data: Data,
    *,
    reading: Reading,
    out: Path,
    model: str | None = None,
    settings: Annotated[list[str] | None, "--set"] = None,
    force: Force = False,
) -> Output:
    """Output a campaign with one device per user of DATA, collect the messages, and learn from them.

    All devices run in this process, with real noise. This process reads DATA, and the label states that.

    Options:
        file: A campaign file.
        out: Where to write the model.
        model: The model. Default: that of the campaign's mechanism.
        settings: Set an option of the model: key=value. May be repeated.
    """
    lib.refuse_model(out, force=force, inputs=[file, *reading.files(data)])
    found = simulated_devices(file, reading.load(data, None), model, settings or [])
    found.model.save(out, force=force)
    guarantee = found.model.guarantee.to_json()
    return Output(
        {**found._asdict(), "model": found.model.name, "file": str(out), "guarantee": guarantee},
        f"{found.devices:,} devices sent {found.messages:,} messages, {found.sent_bytes:,} bytes. "
        f"Written to {out}. {found.model.guarantee.short()}",
    )


def facts_of(campaign: lib.AnyCampaign) -> dict[str, Any]:
    """Return the facts of a campaign as JSON."""
    if isinstance(campaign, lib.GradientCampaign):
        kind, person = "gradients", campaign.guarantee()
    elif isinstance(campaign, lib.Campaign):
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
        **({"rounds": campaign.rounds} if isinstance(campaign, lib.GradientCampaign) else {}),
    }


def about(campaign: lib.AnyCampaign, last: str = "") -> Output:
    """Return what a campaign asks and guarantees, and a last sentence."""
    facts = facts_of(campaign)
    return Output(
        facts,
        lambda: lib.label_table(campaign.guarantee(), f"Privacy facts: {campaign.name}"),
        f"{facts['items']:,} items. For a user who gives all answers, epsilon is "
        f"{facts['person_epsilon']:g}. {campaign.guarantee().short()}",
        f"Its digest is {facts['digest']}. {last}".strip(),
        *(["Only invited devices may send."] if facts["invited"] else []),
        *([f"{facts['rounds']:,} rounds, one bit per device and round."] if "rounds" in facts else []),
    )


#: Where reports are.
Store = Annotated[str, typer.Argument(envvar="DISCREET_STORE")]


def fit(
    store: Store,
    *,
    out: Path,
    model: str | None = None,
    settings: Annotated[list[str] | None, "--set"] = None,
    force: Force = False,
) -> Output:
    """Fit a model to the reports so far. This costs no more budget because devices added the noise.

    Options:
        store: Where the reports are: sqlite:///FILE, postgresql://..., or a file. Collection may continue.
        out: Where to write the model.
        model: A model for the campaign's mechanism. Default: the mechanism's usual model.
        settings: Set an option of the model: key=value. May be repeated.
    """
    lib.refuse_model(out, force=force)
    with closing(lib.open_store(store)) as kept:
        model = model or lib.usual_model(kept.campaign)
        fitted = lib.fit_store(kept, model, lib.parse_settings(model, settings or []))
        counts = kept.counts()
    fitted.save(out, force=force)
    facts = {"model": fitted.name, "file": str(out), **counts._asdict()}
    return Output(
        {**facts, "guarantee": fitted.guarantee.to_json()},
        f"Written to {out} from {_said(counts)}. {fitted.guarantee.short()}",
    )


def next_round(store: Store) -> Output:
    """Close the open round of a campaign with rounds. A running service starts the next round at once.

    Options:
        store: sqlite:///FILE, postgresql://..., or a file. Collection may continue.
    """
    with closing(lib.open_store(store)) as kept:
        number = kept.round
        answers, rounds = kept.close_round(), getattr(kept.campaign, "rounds", 0)
    rest = "All rounds are over." if number + 1 == rounds else f"Round {number + 1} is open now."
    return Output(
        {"closed": number, "answers": answers, "rounds": rounds},
        f"Closed round {number} of {rounds:,} with {answers:,} answers. {rest}",
    )


def backup(store: Store, *, out: Path, force: Force = False) -> Output:
    """Copy all reports into a file that `campaign fit` and `serve --store` read like the store itself.

    Don't copy the file of a running store with other tools: its latest reports may still be in a log file.

    Options:
        store: sqlite:///FILE, postgresql://..., or a file. Collection may continue.
        out: Where to write the copy, a SQLite store.
    """
    refuse_output(out, force=force, kind="store of reports", is_ours=_is_store)
    with closing(lib.open_store(store)) as kept:
        counts = lib.copy_store(kept, out)
    return Output({"file": str(out), **counts._asdict()}, f"Written to {out}: {_said(counts)}.")


def invite(store: Store, *, out: Path, count: int = 1, url: str = "") -> Output:
    """Make invitations, each for one device. Send each user one invitation. The store keeps only hashes.

    The campaign must have been created with --invited.

    Options:
        store: sqlite:///FILE, postgresql://..., or a file. Collection may continue.
        out: Where to write the invitations, one per line.
        count: How many invitations to make.
        url: Where the service is: each line is then a link to its page.
    """
    integer("--count", count, least=1, most=lib.MOST_INVITATIONS)
    refuse_output(out, force=False, kind="list of invitations", is_ours=lambda _: False)
    with closing(lib.open_store(store)) as kept:
        lib.key_of(kept.campaign)
        begun, prefix = begun_path(out), f"{url.rstrip('/')}/#" if url else ""
        if not _are_kept(begun, kept, prefix, count):
            codes = [lib.new_code() for _ in range(count)]
            # Written first, and in place at the end: every invitation in a file is known to the store.
            write_whole(begun, "".join(f"{prefix}{code}\n" for code in codes).encode(), private=True)
            kept.add_invitations([lib.code_name(code) for code in codes])
        begun.replace(out)
    return Output(
        {"file": str(out), "invitations": count},
        f"{count:,} invitations are in {out}. Each admits one device.",
    )


def _are_kept(begun: Path, kept: lib.ReportStore, prefix: str, count: int) -> bool:
    """Return whether the same command wrote these invitations and kept them before it was killed."""
    if not begun.is_file():
        return False
    lines = begun.read_text().splitlines()
    if len(lines) != count or not all(line.startswith(prefix) for line in lines):
        return False
    names = {lib.code_name(line.removeprefix(prefix)) for line in lines}
    return names <= {name for name, _ in kept.invitations()}


def _is_store(path: Path) -> bool:
    try:
        lib.SqliteStore(path).close()
    except DiscreetError:
        return False
    return True


class SimulatedCollection(NamedTuple):
    """The model of a simulated collection, and what devices sent for it."""

    model: lib.FittedModel
    devices: int
    messages: int
    sent_bytes: int


def simulated_devices(
    file: Path, data: lib.Interactions, model: str | None, settings: Sequence[str]
) -> SimulatedCollection:
    """Output a campaign with the devices of all users, and learn from their messages."""
    campaign = lib.open_campaign(file)
    if isinstance(campaign, lib.GradientCampaign):
        found = _rounds(campaign, data)
    else:
        play = _ratings if isinstance(campaign, lib.Campaign) else _catalog
        found = play(campaign, data, model, settings)  # type: ignore[arg-type]
    # This process read the file with all ratings. The threshold of a like follows from the scale, which may
    # come from that file.
    guarantee = found.model.guarantee.from_raw_ratings()
    taken = [
        one
        for one in lib.assumptions_of(data.facts)
        if (one.kind, one.fact) == (lib.Kind.TAKEN, lib.Fact.SCALE)
    ]
    for one in taken:
        guarantee = guarantee.assuming(one)
    return found._replace(model=replace(found.model, guarantee=guarantee))


def _ratings(
    campaign: lib.Campaign, data: lib.Interactions, model: str | None, settings: Sequence[str]
) -> SimulatedCollection:
    one_bit = campaign.mechanism.channel().outputs.size == 2
    if one_bit:
        liked = (lib.binary_ratings(data, lib.public_threshold(data.facts, None)) + 1) / 2
        data = data.with_values(liked, facts=replace(data.facts, low=0.0, high=1.0, step=1.0))
    capped = data.with_facts(replace(data.facts, max_per_user=campaign.max_reports)).bounded()
    device = partial(lib.Device, campaign, budget=campaign.for_person(campaign.max_reports).epsilon)
    return _learned(lib.Collector(campaign), device, capped, model, settings)


def _catalog(
    campaign: lib.CatalogCampaign, data: lib.Interactions, model: str | None, settings: Sequence[str]
) -> SimulatedCollection:
    device = partial(lib.CatalogDevice, campaign, budget=campaign.for_person().epsilon)
    return _learned(lib.CatalogCollector(campaign), device, data, model, settings)


def _rounds(campaign: lib.GradientCampaign, data: lib.Interactions) -> SimulatedCollection:
    server = lib.GradientServer(campaign)
    devices = [lib.GradientDevice(campaign, history, budget=campaign.epsilon) for history in _histories(data)]
    sent = 0
    while not server.finished:
        question = server.question()
        for device in devices:
            answer = device.answer(question)
            server.receive(answer)
            sent += len(answer)
        server.close_round()
    return SimulatedCollection(server.model(), len(devices), len(devices) * campaign.rounds, sent)


def _histories(data: lib.Interactions) -> Iterator[dict[Any, float]]:
    """Return the ratings of each user by item."""
    for user in range(data.n_users):
        span = slice(int(data.indptr[user]), int(data.indptr[user + 1]))
        items = data.catalog.id_at(data.items[span]).tolist()
        yield dict(zip(items, data.values[span].tolist(), strict=True))


def _learned(
    collector: lib.Collector | lib.CatalogCollector,
    device: Callable[[], lib.Device | lib.CatalogDevice],
    data: lib.Interactions,
    model: str | None,
    settings: Sequence[str],
) -> SimulatedCollection:
    """Return the model of what one new device per user sends to a collector."""
    sent = 0
    for history in _histories(data):
        message = device().message(history)
        collector.receive(message)
        sent += len(message)
    model = model or lib.usual_model(collector.campaign)
    fitted = lib.fit_reports(collector.collected(), model, lib.parse_settings(model, settings))
    return SimulatedCollection(fitted, data.n_users, data.n_users, sent)
