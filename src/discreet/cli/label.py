"""`discreet model label`: show the privacy label of a model file, or of synthetic data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.errors import OptionNeeds
from discreet.cli.options.declared import AsJson, Force
from discreet.cli.output.printing import emit, show, write
from discreet.core.checks import visible

if TYPE_CHECKING:
    from rich.table import Table

    from discreet.audit.last_audits import LastAudit
    from discreet.dossier.evidence import LedgerRecord


def label(
    file: Annotated[Path, typer.Argument(help="A model file, or synthetic data.")],
    registry: Annotated[
        Path | None,
        typer.Option("--registry", help="Write an entry for the public registry of deployments (YAML)."),
    ] = None,
    facts: Annotated[
        Path | None,
        typer.Option("--facts", help="A TOML file with the human facts of the registry entry."),
    ] = None,
    page: Annotated[Path | None, typer.Option("--html", help="Write the label to this HTML page.")] = None,
    card: Annotated[
        Path | None, typer.Option("--card", help="Write a model card (Hugging Face layout) to this file.")
    ] = None,
    people: Annotated[
        int | None,
        typer.Option("--people", help="Also state the guarantee for a group of this many users.", min=1),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Also show this release in its ledger: number, spent, left."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The data's name in the ledger, if the file doesn't state it."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Also list each release with its noise, and each array.")
    ] = False,
    force: Force = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the label as Markdown.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the guarantee of a model or synthetic data, and why each array or column may be published."""
    from discreet.audit.last_audits import last_audit
    from discreet.models.signatures import signed_sentence, signer

    key = signer(file)
    signed = signed_sentence(key)
    # This command verified the signer, so it overwrites an entry of that name in the file.
    content = {**read_any_label(file, signed=key is not None), "signed_by": key}
    if facts is not None and registry is None:
        raise OptionNeeds(
            options=("--facts",), needs="--registry FILE", why="it states facts for a registry entry"
        )
    record = _recorded(content, ledger, name)
    written = _write_elsewhere(content, signed, file, registry, page, card, facts=facts, force=force)
    if markdown:
        from discreet.privacy.guarantee import Guarantee
        from discreet.report.label import label_markdown

        guarantee = Guarantee.from_json(content["guarantee"])
        write(visible(label_markdown(content, guarantee, signed).rstrip("\n")))
        return
    last = last_audit(content["name"])
    if as_json:
        audit = None if last is None else last.to_json()
        emit({**content, **_odds(content, people), "ledger": record and asdict(record), "last_audit": audit})
        return
    if written:
        from discreet.privacy.guarantee import Guarantee

        show(f"{' '.join(written)} {Guarantee.from_json(content['guarantee']).sentence()}")
        return
    _show(content, last, people, () if record is None else record.rows(), full=full)


def _recorded(content: dict[str, Any], ledger: Path | None, name: str | None) -> LedgerRecord | None:
    """Return the ledger's facts about the file's release."""
    if ledger is None:
        return None
    from discreet.dossier.evidence import LedgerRecord
    from discreet.privacy.ledger.book import Ledger

    with Ledger.open(ledger, read_only=True) as book:
        return LedgerRecord.find(book, content, name)


def _odds(content: dict[str, Any], people: int | None) -> dict[str, Any]:
    """Return an attacker's odds, and the guarantee of a group, if the label has a guarantee."""
    from discreet.dossier.evidence import for_people
    from discreet.privacy.guarantee import Guarantee
    from discreet.report.odds import Odds

    guarantee = Guarantee.from_json(content["guarantee"])
    if not guarantee.is_private:
        return {}
    found: dict[str, Any] = {"odds": Odds.of(guarantee).to_json()}
    if people is not None:
        epsilon, delta, said = for_people(guarantee, people)
        level = "inf" if math.isinf(epsilon) else epsilon
        found["group"] = {"people": people, "epsilon": level, "delta": delta, "sentence": said}
    return found


def _said_of_odds(content: dict[str, Any], people: int | None) -> tuple[str, ...]:
    """Return the odds as sentences and as a picture in one line."""
    from discreet.privacy.guarantee import Guarantee
    from discreet.report.odds import Odds, odds_bar

    found = _odds(content, people)
    if not found:
        return ()
    odds = Odds.of(Guarantee.from_json(content["guarantee"]))
    group = found.get("group")
    return (odds.sentence(), odds_bar(odds), *(() if group is None else (group["sentence"],)))


def _releases(content: dict[str, Any]) -> Table:
    """Return the releases of the certificate as a table; a file without one has no rows."""
    from rich.table import Table

    from discreet.dossier.evidence import listed_releases

    table = Table("release", "mechanism", "noise", "bound", title="Releases (from the certificate)")
    for row in listed_releases(content):
        table.add_row(*map(visible, row))
    return table


def _show(
    content: dict[str, Any],
    last: LastAudit | None,
    people: int | None,
    recorded: Sequence[tuple[str, str]],
    *,
    full: bool,
) -> None:
    """Print the guarantee, where each array comes from, and what else is known about the file."""
    from rich.table import Table

    from discreet.privacy.guarantee import Guarantee
    from discreet.report.label import by_origin, label_table, used_rows

    promise = Guarantee.from_json(content["guarantee"])
    used = [*_method(content["name"]), *used_rows(content, content.get("signed_by")), *recorded]
    facts = label_table(promise, f"Privacy facts: {content['name']}", used)
    table = Table("arrays", "where they come from", title="What the file contains", show_lines=True)
    for origin, names in by_origin(content["provenance"]):
        table.add_row(names, origin)
    limits = (f"Not to be used for {text}." for text in content.get("not_for", ()))
    audited = _audited(content, last)
    odds = _said_of_odds(content, people)
    more = [_releases(content), table] if full else ["Add --full to list each release and each array."]
    show(facts, promise.sentence(), *odds, *limits, *audited, *more)


def _method(name: str) -> list[tuple[str, str]]:
    """Return a row with the source of one of our methods: who published or refuted it, or that it is ours."""
    from discreet.cli.models import own_models

    return [("Method", row["source"]) for row in own_models() if row["name"] == name and row["source"]]


def read_any_label(file: Path, *, signed: bool) -> dict[str, Any]:
    """Return the label of a model or of synthetic data. For synthetic data, it states who vouches for it."""
    from discreet.data.synthetic_labels import label_path
    from discreet.models.storage import read_label
    from discreet.synthesis.labels import UNSIGNED, is_synthetic, read_synthetic_label

    # A label next to the file that belongs to a different file is rejected with a message of its own.
    if not is_synthetic(file) and not label_path(file).is_file():
        return read_label(file)
    found = read_synthetic_label(file)
    if not signed:
        found["guarantee"]["notes"] = [*found["guarantee"]["notes"], UNSIGNED]
    return found


# At most this many letters of a setting are shown.
_LONGEST = 36


def _audited(content: dict[str, Any], last: LastAudit | None) -> tuple[str, ...]:
    """Return the sentence about the last audit, which used the default settings."""
    if last is None:
        return ()
    from discreet.audit.last_audits import audited_settings

    default = audited_settings(content["name"])
    changed = [
        f"{key}={_short(value)}"
        for key, value in content.get("parameters", {}).items()
        if key not in ("epsilon", "delta") and key in default and value != default[key]
    ]
    has = f" The audit was of the default settings; this model has {', '.join(changed)}." if changed else ""
    return (f"Last audit of this kind of model: {last.sentence()}{has}",)


def _short(value: Any) -> str:
    """Return a setting as a few visible letters. The file may come from an unknown author."""
    text = value if isinstance(value, str) else json.dumps(value)
    return visible(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")


def _write_elsewhere(
    content: dict[str, Any],
    signed: str,
    file: Path,
    registry: Path | None,
    page: Path | None,
    card: Path | None,
    *,
    facts: Path | None,
    force: bool,
) -> list[str]:
    """Write the label in the requested formats, all or none. Return sentences about the written files."""
    from discreet.audit.last_audits import last_audit
    from discreet.core.files import refuse_output, write_whole
    from discreet.dossier.facts import HumanFacts
    from discreet.dossier.registry import ENTRY, is_entry, registry_entry
    from discreet.export.card import CARD, is_card, model_card
    from discreet.privacy.guarantee import Guarantee
    from discreet.report.label import PAGE, label_html
    from discreet.report.pages import refuse_page

    texts: dict[Path, str] = {}
    if registry is not None:
        inputs = [file, *texts, *([] if facts is None else [facts])]
        refuse_output(registry, force=force, kind=ENTRY, is_ours=is_entry, inputs=inputs)
        texts[registry] = registry_entry(content, None if facts is None else HumanFacts.read(facts))
    if page is not None:
        refuse_page(page, kind=PAGE, force=force, inputs=[file, *texts])
        texts[page] = label_html(content, Guarantee.from_json(content["guarantee"]), signed)
    if card is not None:
        refuse_output(card, force=force, kind=CARD, is_ours=is_card, inputs=[file, *texts])
        last = last_audit(content["name"])
        said = "".join(_audited(content, last))
        texts[card] = model_card(content, signed, last, said, file=file.name)
    for path, text in texts.items():
        write_whole(path, text.encode("utf-8"))
    return [f"Written to {path}." for path in texts]
