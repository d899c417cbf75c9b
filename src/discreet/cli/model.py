"""`discreet model`: label, sign, score, export, and extend a model file, and write documents about it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from discreet.cli import lib
from discreet.cli.errors import (
    NotSigned,
    OptionDoesNotApply,
    OptionMissing,
    OptionNeeds,
    OtherSigner,
    UnsupportedByModel,
)
from discreet.cli.options.declared import Data, Force, ForceFolder, Measuring, ModelFile, Reading
from discreet.cli.options.parsing import parse_columns
from discreet.cli.output.printing import Output, remark, show, table_of, write
from discreet.core import refuse_output, without_password, write_whole
from discreet.core.checks import visible


def label(
    file: Path,
    *,
    registry: Path | None = None,
    facts: Path | None = None,
    page: Annotated[Path | None, "--html"] = None,
    card: Path | None = None,
    people: Annotated[int | None, typer.Option("--people", min=1)] = None,
    ledger: Path | None = None,
    name: str | None = None,
    full: bool = False,
    force: Force = False,
    markdown: bool = False,
) -> Output:
    """Show the guarantee of a model or of synthetic data.

    Options:
        file: A model file, or synthetic data.
        registry: Write an entry for the public registry of deployments (YAML).
        facts: A TOML file with the facts that you supply for a full label or a registry entry.
        page: Write the label to this HTML page.
        card: Write a model card (Hugging Face layout) to this file.
        people: Also state the guarantee for a group of this many users.
        ledger: Also show the release's number, and the budget spent and left, in this ledger.
        name: The data's name in the ledger, if the file doesn't state it.
        full: Also list each release with its noise, each array, and answers for a privacy officer.
        markdown: Print the label as Markdown.
    """
    key = lib.signer(file)
    signed = lib.signed_sentence(key)
    # This command verified the signer, so it overwrites an entry of that name in the file.
    content = {**read_any_label(file, signed=key is not None), "signed_by": key}
    if facts is not None and registry is None and not full:
        raise OptionNeeds(options=("--facts",), needs="--full or --registry FILE", why="these show the facts")
    guarantee = lib.Guarantee.from_json(content["guarantee"])
    record = _recorded(content, ledger, name)
    last = lib.last_audit(*lib.audited_as(content))
    odds = _odds(guarantee, people)
    limits = (f"Not to be used for {text}." for text in content.get("not_for", ()))
    known = lib.Known(
        method=_method(content["name"]),
        used=() if record is None else record.rows(),
        sentences=[*((odds["group"]["sentence"],) if "group" in odds else ()), *limits],
        audit=lib.audit_sentence(content, last) if guarantee.is_private else "",
        releases=lib.listed_releases(content) if full else [],
        officer=_officer(content, guarantee, facts) if full else [],
    )
    stated = None if facts is None else lib.HumanFacts.read(facts)
    is_label = partial(lib.is_page, kind=lib.LABEL_PAGE)
    documents: list[tuple[Path | None, str, Callable[[Path], bool], Callable[[], str]]] = [
        (registry, lib.ENTRY, lib.is_entry, lambda: lib.registry_entry(content, stated)),
        (page, f"{lib.LABEL_PAGE} page", is_label, lambda: lib.label_html(content, guarantee, signed, known)),
        (card, lib.CARD, lib.is_card, lambda: lib.model_card(content, signed, last, known, file=file.name)),
    ]
    wanted = [_Wanted(path, kind, ours, text()) for path, kind, ours, text in documents if path is not None]
    _write(wanted, [file, *([] if facts is None else [facts])], force=force)
    audit = None if last is None else last.to_json()
    found = {**content, **odds, "ledger": record and asdict(record), "last_audit": audit}
    found["method"] = dict(known.method).get("Method")
    found |= {"officer": dict(known.officer)} if full else {}
    if markdown:
        text = visible(lib.label_markdown(content, guarantee, signed, known).rstrip("\n"))
        return Output(found, lambda: write(text))
    if wanted:
        return Output(found, " ".join([*(f"Written to {one.path}." for one in wanted), guarantee.sentence()]))
    return Output(found, lambda: _show(content, guarantee, known, full=full))


class _Wanted(NamedTuple):
    """A file to write: its path and kind, how we know our own, and its text."""

    path: Path
    kind: str
    is_ours: Callable[[Path], bool]
    text: str


def _write(wanted: Sequence[_Wanted], inputs: Sequence[Path], *, force: bool) -> None:
    """Write the files, all or none: nothing is written before all of them can be."""
    for number, one in enumerate(wanted):
        read = [*inputs, *(other.path for other in wanted[:number])]
        content = one.text.encode()
        refuse_output(one.path, force=force, kind=one.kind, is_ours=one.is_ours, inputs=read, content=content)
    for one in wanted:
        write_whole(one.path, one.text.encode())


def _officer(
    content: dict[str, Any], guarantee: lib.Guarantee, facts: Path | None
) -> Sequence[tuple[str, str]]:
    """Return the lines of a full label for a privacy officer; none if no user is protected."""
    if not guarantee.is_private:
        return []
    stated = lib.HumanFacts() if facts is None else lib.HumanFacts.read(facts)
    return lib.officer_rows(content, {name: stated.text(name) for name in lib.MEANINGS}, stated.published)


def _recorded(content: dict[str, Any], ledger: Path | None, name: str | None) -> lib.LedgerRecord | None:
    """Return the ledger's facts about the file's release."""
    if ledger is None:
        return None

    with lib.Ledger.open(ledger, read_only=True) as book:
        return lib.LedgerRecord.find(book, content, name)


def _odds(guarantee: lib.Guarantee, people: int | None) -> dict[str, Any]:
    """Return an attacker's odds, and the guarantee of a group, if the label has a guarantee."""
    if not guarantee.is_private:
        return {}
    found: dict[str, Any] = {"odds": lib.Odds.of(guarantee).to_json()}
    if people is not None:
        epsilon, delta, said = lib.for_people(guarantee, people)
        level = "inf" if math.isinf(epsilon) else epsilon
        found["group"] = {"people": people, "epsilon": level, "delta": delta, "sentence": said}
    return found


def _show(content: dict[str, Any], guarantee: lib.Guarantee, known: lib.Known, *, full: bool) -> None:
    """Print the guarantee, where each array comes from, and what else is known about the file."""
    used = [*known.method, *lib.used_rows(content, content.get("signed_by")), *known.used]
    called = lib.titled(content["name"], content.get("parameters", {}))
    odds = [lib.Odds.of(guarantee)] if guarantee.is_private else []
    said = [text for one in odds for text in (one.sentence(), lib.odds_bar(one))]
    more: list[lib.Table | str] = ["Add --full to list each release and each array."]
    if full:
        releases = lib.Table(title="Releases (from the certificate)")
        for header in lib.RELEASES:
            releases.add_column(header, overflow="fold")
        for row in known.releases:
            releases.add_row(*map(visible, row))
        arrays = lib.Table("arrays", "where they come from", title="What the file contains", show_lines=True)
        for origin, names in lib.by_origin(content["provenance"]):
            arrays.add_row(names, origin)
        officer = lib.Table("what", "answer", title=lib.OFFICER_TITLE, show_lines=True)
        for what, answer in known.officer:
            officer.add_row(what, visible(answer))
        more = [releases, arrays, *([officer] if known.officer else [])]
    facts = lib.label_table(guarantee, f"Privacy facts: {called}", used)
    show(facts, guarantee.sentence(), *filter(None, (*said, *known.sentences, known.audit)), *more)


def _method(name: str) -> list[tuple[str, str]]:
    """Return a row with the source of one of our methods: who published or refuted it, or that it is ours."""
    from discreet.cli.models import own_models

    return [
        ("Method", row["source"].replace("ours", "developed for discreet"))
        for row in own_models()
        if row["name"] == name and row["source"]
    ]


def read_any_label(file: Path, *, signed: bool) -> dict[str, Any]:
    """Return the label of a model or of synthetic data. For synthetic data, it states who vouches for it."""
    # A label next to the file that belongs to a different file is rejected with a message of its own.
    if not lib.is_synthetic(file) and not lib.label_path(file).is_file():
        return lib.read_label(file)
    found = lib.read_synthetic_label(file)
    if not signed:
        found["guarantee"]["notes"] = [*found["guarantee"]["notes"], lib.UNSIGNED]
    return found


def dossier(
    file: Path,
    *,
    out: Path,
    ledger: Path | None = None,
    name: str | None = None,
    facts: Path | None = None,
    force: Force = False,
) -> Output:
    """Write a registry entry, answers for reviewers and regulators, and a page to print and sign.

    Options:
        file: A model file, or synthetic data.
        out: The folder to write.
        ledger: The ledger that recorded the release.
        name: The dataset's name in the ledger.
        facts: A TOML file with facts that only a human knows. The folder contains one to fill in.
    """
    if name is not None and ledger is None:
        raise OptionNeeds(options=("--name",), needs="--ledger", why="it names a dataset of the ledger")
    lib.refuse_folder(out, force=force)
    key = lib.signer(file)
    label = read_any_label(file, signed=key is not None)
    is_drawn = str(label["name"]).startswith(lib.DRAWN_FROM)
    stated = lib.HumanFacts() if facts is None else lib.HumanFacts.read(facts)
    record = None
    if ledger is not None:
        with lib.Ledger.open(ledger, read_only=True) as book:
            record = lib.LedgerRecord.find(book, label, name)
    found = lib.Evidence(
        label=label,
        facts=stated,
        ledger=record,
        signed=lib.signed_sentence(key),
        file=file.name,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        version=lib.__version__,
        signals=None if is_drawn else lib.Signals.of(lib.load(file)),
    )
    files = lib.write_dossier(found, out, force=force)
    missing = (
        f"discreet: missing human facts are marked: {', '.join(stated.missing)}. Fill in "
        f"{out / lib.FACTS_FILE}, then repeat the command with --facts {out / lib.FACTS_FILE} --force."
    )
    return Output(
        {"out": str(out), "files": files, "missing": list(stated.missing)},
        lambda: remark(missing) if stated.missing else None,
        f"Written to {out}: {', '.join(files)}.",
    )


def sign(model: ModelFile, *, key: Path, new_key: bool = False) -> None:
    """Sign a model file. The signature is written next to it, to a file that ends in .sig.

    Options:
        key: The private Ed25519 key: a PEM file.
        new_key: Create the key at this path first.
    """
    lib.read_label(model)
    public = lib.signatures.new_key(key, model) if new_key else lib.signatures.sign_file(model, key)
    show(f"Signed {model} in {lib.signatures.signature_path(model)}. The public key is {public}.")


def verify(model: Path, *, key: str) -> None:
    """Check that a model, or a statement about an erased user, was signed with this key and hasn't changed.

    Options:
        model: A model that `discreet fit` wrote, or a statement that `discreet model erase` wrote.
        key: The expected signer: the public key as `sign` prints it, or a file with the key.
    """
    if not _is_statement(model):
        lib.read_label(model)
    expected = lib.public_key(key)
    found = lib.signer(model)
    if found is None:
        raise NotSigned(path=model)
    if found != expected:
        raise OtherSigner(path=model, key=found)
    show(f"{model} was signed with this key and has not changed since.")


def erase(
    ledger: Path,
    *,
    name: str,
    accounts: Annotated[int, typer.Option("--accounts", min=1)] = 1,
    withdrawn: list[int] | None = None,
    reference: str = "",
    out: Path | None = None,
    key: Path | None = None,
    force: Force = False,
) -> Output:
    """State what live releases can still reveal about a user whose rows you deleted.

    The bound comes from the ledger alone. To delete the rows of a continual release, use
    `discreet follow erase` first. To fit without a user, pass `--without` to `discreet fit`.

    Options:
        ledger: The ledger that recorded the releases.
        name: Name of the data in the ledger.
        accounts: Number of accounts the user had.
        withdrawn: Number of a ledger entry that was withdrawn everywhere. Repeatable.
        reference: Your number for the request. Don't use the user's ID.
        out: Write the statement (JSON) to this file.
        key: Sign the statement with this private Ed25519 key (PEM).
    """
    if key is not None and out is None:
        raise OptionNeeds(options=("--key",), needs="--out FILE", why="it signs that file")
    if key is not None:
        lib.signatures.private_key(key)
    if out is not None:
        refuse_output(out, force=force, kind="statement", is_ours=_is_statement, inputs=[ledger])
    with lib.Ledger.open(ledger, read_only=True) as book:
        found = lib.erasure(
            book, name, accounts=accounts, withdrawn=frozenset(withdrawn or ()), reference=reference
        )
    if out is not None:
        write_whole(out, found.text().encode())
    signed = None if key is None or out is None else lib.signatures.sign_file(out, key)
    live, gone = len(found.live), len(found.withdrawn)
    return Output(
        {**found.to_json(), "out": None if out is None else str(out), "signed_by": signed},
        f"{live:,} live {'release' if live == 1 else 'releases'} about {name!r}"
        + (f", {gone:,} withdrawn." if gone else "."),
        *(one.sentence() for one in found.remaining),
        *([_WORST_NOISE] if found.account is lib.Account.GAUSSIAN and found.is_bounded else []),
        *([f"Statement written to {out}."] if out is not None else []),
        *([f"Signed with the key {signed}."] if signed else []),
    )


_WORST_NOISE = (
    "This bound assumes the worst noise with this epsilon and delta. `discreet budget plan` shows smaller "
    "chances, because it counts Gaussian noise exactly."
)


def _is_statement(path: Path) -> bool:
    """Return whether a file is a statement that this command wrote."""
    try:
        return bool(json.loads(path.read_bytes()[: 1 << 20])["format"] == lib.ERASURE_FORMAT)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def bundle(
    file: ModelFile,
    *,
    out: Path,
    precision: list[str] | None = None,
    onnx: bool = False,
    title: str | None = None,
    package: str = "discreet-recommendations",
    force: ForceFolder = False,
) -> Output:
    """Write a folder that recommends on the device: a page, an npm package, the label. Costs no budget.

    Histories stay on the device. bundle.json states how closely quantized recommendations match `recommend`,
    measured on histories drawn from released numbers.

    Options:
        out: The folder to create.
        precision: Number format: int8, float16, or float32; repeatable. The page uses the first format.
            Default: int8 and float16.
        onnx: Also write model.onnx, in the first precision; needs an extra.
        title: The heading of the page.
        package: The name of the npm package.
    """
    fitted = lib.load(file)
    made = lib.write_bundle(
        fitted,
        out,
        force=force,
        precisions=precision or ["int8", "float16"],
        title=title,
        package=package,
        onnx=onnx,
    )
    return Output(
        {"folder": str(out), **made, "promise": fitted.guarantee.short()},
        f"Written to {out}: {made['items']:,} items of {made['name']}, with their label.",
        fitted.guarantee.short(),
        *(_line(name, about) for name, about in made["models"].items()),
        f"Serve it: `python -m http.server --directory {out}` and open http://localhost:8000/.",
    )


def _line(name: str, about: dict[str, Any]) -> str:
    return (
        f"{name}: {about['bytes'] / 1e3:,.0f} kB. On {about['lists']} histories drawn from the release "
        f"{about['shared_at_10']:.2%} of the first 10 items and {about['equal_lists']:.1%} of lists are "
        "the same as from `recommend`."
    )


def export(
    file: ModelFile,
    *,
    out: Path | None = None,
    to: str = "parquet",
    url: Annotated[str | None, typer.Option("--url", envvar="DISCREET_EXPORT_URL")] = None,
    name: str = "items",
    force: ForceFolder = False,
) -> Output:
    """Write item vectors, the label, and an index for a vector store. This costs no privacy budget.

    Recommendations are sorted by the inner product of an item's vector and `model.search_vector(history)`.
    This works for models of implicit feedback whose scores are inner products. If noise allows it,
    user-factorization also has weights between items, which aren't vectors. `model.rerank` adds them.

    Options:
        out: The folder to create.
        to: What to write in addition to the vectors: parquet (nothing), faiss, hnswlib, pgvector, qdrant, or
            feast (a feature repository). Or onnx: a graph from histories to lists instead of vectors.
        url: Fill a running server instead: postgresql://... (pgvector) or http://... (qdrant).
        name: The table of pgvector, the collection of qdrant, or the project and view of feast.
    """
    if (out is None) == (url is None or to not in lib.LIVE):
        raise OptionMissing(options=("--out FOLDER", "--url ADDRESS"))
    fitted = lib.load(file)
    if out is not None:
        lib.export_items(fitted, out, to, name=name, force=force)
    elif url is not None:
        lib.load_items(fitted, url, to, name=name, force=force)
    place = str(out) if out is not None else f"the {to} server, as {name}"
    where = {"folder": str(out)} if out is not None else {"table": name}
    promise = fitted.guarantee.short()
    facts = {"to": to, "items": len(fitted.catalog), "name": fitted.name, "promise": promise}
    # A graph contains everything that orders recommendations; vectors don't.
    left_out = None if to == "onnx" else fitted.scorer.search_leaves_out or None
    what = "a graph that ranks" if to == "onnx" else "vectors of"
    said = [f"Written to {place}: {what} {len(fitted.catalog):,} items, with their label.", promise]
    if to != "onnx" and not _has_factors(fitted):
        said.append(
            "The model found no latent factors above the noise: its vectors give all users the same order."
        )
    if left_out:
        said.append(
            f"The vectors don't include {left_out}. `model.rerank(history, found)` adds this to search "
            "results."
        )
    return Output({**where, **facts, "leaves_out": left_out}, *said)


def _has_factors(model: lib.FittedModel) -> bool:
    """Return whether vectors can tell users apart."""
    try:
        model.scorer.item_vectors()
    except lib.NoFactorsFound:
        return False
    return True


def add_items(file: ModelFile, table: Path, *, out: Path, force: Force = False) -> Output:
    """Add new items to a model from public item features. This costs no privacy budget.

    Options:
        table: Public features of all items, old and new: a .csv or .parquet file, item IDs first.
        out: Where to write the extended model.
    """
    fitted = lib.load(file)
    grown = fitted.add_items(table)
    grown.save(out, force=force)
    added = len(grown.catalog) - len(fitted.catalog)
    return Output(
        {"file": str(out), "added": added, "items": len(grown.catalog)},
        f"Written to {out}: {added:,} new items, {len(grown.catalog):,} in all.",
    )


def score(model: ModelFile, data: Data, measuring: Measuring, reading: Reading) -> Output:
    """Score a model file as it is served, without fitting. Any model works, also from parties or devices.

    The first part of each split is the history, and the rest is to be predicted. Use data that the model has
    not seen: --split time:DATE with the date of the fit. Don't publish the scores: they have no noise.
    """
    fitted = lib.load(model)
    past = _read(fitted, data, reading)
    found, held_out, asked = _scores(fitted, past, data, measuring, reading)
    rows = [
        (name, f"{one['mean']:.4f}", "-" if one["simple"] is None else f"{one['simple']:.4f} ({one['by']})")
        for name, one in found.items()
    ]
    seen = (
        " If the model was fitted on what is held out here, its scores are too good: use --split time:DATE "
        "with the date of its fit."
    ) * (not (measuring.split or "").startswith("time:"))
    which = "latest" if (measuring.split or "").startswith("given:") else "first"
    repeats = f" Only the {which} of repeated interactions counts." * (past.facts.low == past.facts.high)
    title = f"{model} on {without_password(data)}; held out: {held_out}"
    return Output(
        {
            "model": fitted.name,
            "held_out": held_out,
            "on": asked,
            "metrics": found,
            "note": lib.SCORES_NOT_COVERED,
        },
        lambda: table_of(("metric", "model", "best simple baseline"), rows, title=title),
        f"Scored on {asked}. Items that the model doesn't know are skipped.{repeats} The baseline learned "
        f"from these histories without noise.{seen}",
        *(
            f"{name}: no better than {scores['by']} without noise."
            for name, scores in found.items()
            if _behind(name, scores)
        ),
        "Scores have no noise: don't publish them.",
        *measuring.hints(found, timed=past.times is not None),
    )


def _behind(name: str, scores: dict[str, Any]) -> bool:
    """Return whether a simple baseline is as good. Metrics of variety have no direction."""
    metric = lib.Metric.parse(name)
    if scores["simple"] is None or not isinstance(metric.definition, lib.ListMetric | lib.RatingMetric):
        return False
    sign = 1 if metric.lower_is_better else -1
    return bool(sign * scores["mean"] >= sign * scores["simple"])


def _read(fitted: lib.FittedModel, data: str, reading: Reading) -> lib.Interactions:
    """Return the data in the model's catalog. Items that the model doesn't know are skipped."""
    if reading.items is not None:
        raise OptionDoesNotApply(
            options=("--items",), to="a fitted model", why="a fitted model has its own catalog"
        )
    facts = fitted.facts
    rated = facts.low != facts.high
    implicit, duplicates = reading.implicit or not rated, reading.duplicates
    if implicit:
        if duplicates in ("mean", "count"):
            raise OptionDoesNotApply(
                options=("--duplicates",),
                to="metrics of lists",
                why="recommendations are new items, so the first of repeated pairs counts",
            )
        # The last repeat would move an item that a user had long before a date behind it, and then ask for
        # it.
        duplicates = "first"
    known = replace(reading, drop_unknown=True, implicit=implicit, duplicates=duplicates)
    scale = (facts.low, facts.high, facts.step) if not implicit else (None, None, None)
    return known.load(data, catalog=fitted.catalog, scale=scale, remembered=fitted.schema)


def _scores(
    fitted: lib.FittedModel, past: lib.Interactions, data: str, measuring: Measuring, reading: Reading
) -> tuple[dict[str, dict[str, Any]], str, str]:
    """Return each metric's mean over the splits and best baseline, what was held out, and how much."""
    metrics = lib.parse_metrics(measuring.metrics or _usual(fitted, past))
    plan = measuring.plan(map(str, metrics), past)
    if past.facts.low == past.facts.high and any(not metric.ranks for metric in metrics):
        raise UnsupportedByModel(
            model=fitted.name, option="metrics of predicted ratings", why="it was fitted for lists"
        )
    where: dict[str, Any] = {
        "folder": lib.folder_of(data, reading.layout),
        "columns": parse_columns(reading.columns),
        "drop_unknown": True,
    }
    parts = [
        part
        for number in range(measuring.repeat)
        for part in plan.splits(past, measuring.seed + number, **where)
    ]
    how: dict[str, Any] = {"seed": measuring.seed, "item_features": measuring.item_features}
    mine = lib.Score.gather(lib.measure(fitted, one.train, one.test, metrics, **how) for one in parts)
    simple = [lib.baselines(one.train, one.test, metrics, **how) for one in parts]
    found: dict[str, dict[str, Any]] = {}
    for name, score_ in mine.items():
        best = min if lib.Metric.parse(name).lower_is_better else max
        known = {way: lib.Score.gather(run[way] for run in simple).get(name) for way in simple[0]}
        means = [
            (one.mean, way.removeprefix(lib.BASELINE_PREFIX)) for way, one in known.items() if one is not None
        ]
        value, by = best(means) if means else (None, None)
        found[name] = {"mean": score_.mean, "runs": list(score_.values), "simple": value, "by": by}
    people, rows = (sum(many) for many in zip(*(_asked(one.test) for one in parts), strict=True))
    return found, plan.held_out(timed=past.times is not None), f"{rows:,} rows of {people:,} users"


def _asked(test: lib.Interactions) -> tuple[int, int]:
    """Return the number of users with held-out rows, and the number of these rows."""
    import numpy as np

    return int(np.count_nonzero(np.diff(test.indptr))), test.n_ratings


def _usual(fitted: lib.FittedModel, past: lib.Interactions) -> list[str]:
    """Return the default metrics: errors if there are ratings, and hits of lists."""
    if fitted.above is not None:
        return ["accuracy"]
    return ["hr@10", "ndcg@10"] if past.facts.low == past.facts.high else ["rmse"]
