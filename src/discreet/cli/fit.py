"""`discreet fit` and `discreet refit`: fit a model, record its cost, and write it with its label.

`refit` has the settings of the last release, and starts from it if possible.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.cli import lib
from discreet.cli.errors import OnlyInProcess, OptionMissing, OptionNeeds, OptionsConflict, UnsupportedByModel
from discreet.cli.messages import usage_error
from discreet.cli.options.declared import (
    AnyEpsilon,
    Data,
    Force,
    KeptTitles,
    Learning,
    On,
    Paying,
    Reading,
    opened,
    published,
)
from discreet.cli.options.parsing import command_line
from discreet.cli.output.printing import (
    Output,
    remark,
    remark_on_conditions,
    remark_on_delta,
    show,
    show_next,
)
from discreet.cli.output.tables import already_made, price, reading_of, reading_table
from discreet.core import terminal_progress

# After this many half-lives, an eighth is left.
_FADED = 3


def fit(
    data: Data,
    *,
    learning: Learning,
    reading: Reading,
    paying: Paying,
    out: Path | None = None,
    private_catalog: bool = False,
    catalog_share: float = 0.2,
    for_synthesis: bool = False,
    titles: KeptTitles = None,
    use_titles: bool = False,
    force: Force = False,
    explain: bool = False,
    dry_run: bool = False,
    on: On = None,
) -> Output:
    """Fit a model and write it, with its privacy label, to a file.

    Options:
        out: Model file to write. Required unless --dry-run.
        explain: Also show how the data was read, and which decisions the fit made.
        dry_run: Show the cost and the remaining budget, then exit.

    More:
        private_catalog: Select the catalog (and the scale, unless declared) from the data with noise. Only
            items that enough users rated are kept.
        catalog_share: With --private-catalog: fraction of epsilon and delta spent on the selection.
        for_synthesis: Also release history lengths and rating levels, which `discreet data synthesize`
            needs. This uses 3% of the budget; user-factorization only.
        use_titles: Also learn from the table of --titles: its words and numbers are public features of items.
    """
    estimator = _wanted(
        learning.estimator(implicit=reading.implicit, reading=reading), for_synthesis=for_synthesis
    )
    if use_titles:
        estimator = _with_titles(estimator, titles)
    paying.check()
    written = out if dry_run else _required(out)
    with paying.releasing(
        written, written, data, estimator, reading, private_catalog, catalog_share, titles, dry_run=dry_run
    ) as release:
        if dry_run and (made := already_made(paying.ledger, release, written)) is not None:
            return made
        done = None if written is None or dry_run else paying.finished(release, written)
        if written is not None and done is not None:
            return _report(done.model, written, done.name, None, lib.PrivateFacts(), paying)
        _refuse_options(data, written, reading, paying, titles, force=force, private_catalog=private_catalog)
        with terminal_progress(None) as report, opened(data, reading, paying.name, on, report) as opened_data:
            source = estimator.without_unread(opened_data)
            remark_on_delta([estimator], source.facts)
            _remark_on_age(estimator, source)
            chosen = lib.PrivateFacts()
            if private_catalog:
                estimator, chosen = _sharing(estimator, catalog_share, source.facts)
            book = paying.book(source.name, release)
            how_read = reading_of(source) if explain else None
            # An unreadable table is rejected first. A privately selected catalog isn't known yet.
            table = None if titles is None else lib.read_table(titles, _plain_encoding(reading))
            public = {} if table is None or private_catalog else lib.read_columns(table, source.catalog)
            if dry_run or written is None:
                return price(estimator, source, book, chosen=chosen, how_read=how_read, release=release)
            fitted = estimator.fit(
                source, select_items=chosen.catalog, select_scale=chosen.scale, ledger=book, progress=report
            )
        remark_on_conditions(fitted.guarantee, schema=reading.schema, selects=True)
        _remark_on_rejection(opened_data, reading, explain=explain)
        if private_catalog and table is not None:
            public = lib.beside_chosen(table, fitted.catalog)
        else:
            public = lib.moved(public, source.catalog, fitted.catalog)
        fitted = replace(fitted, public=public)
        published(fitted, written, release, force=force)
    return _report(fitted, written, source.name, how_read, chosen, paying)


def _report(
    fitted: lib.FittedModel,
    written: Path,
    name: str,
    how_read: Mapping[str, str] | None,
    chosen: lib.PrivateFacts,
    paying: Paying,
) -> Output:
    """Return what was fitted, where it is, and where its cost was recorded."""
    explained = {} if how_read is None else {"decisions": fitted.scorer.explain(), "reading": dict(how_read)}
    following = command_line("discreet", "recommend", str(written), options={})
    content = {"model": fitted.name, "file": str(written), "name": name, "next": following}
    guarantee = fitted.guarantee.to_json()
    said = f"Written to {written}. {paying.recorded(name, fitted.guarantee)}".strip()
    return Output(
        {**content, "guarantee": guarantee, **explained},
        lambda: _show_fit(fitted, how_read, chosen, said),
        lambda: show_next(following),
    )


# What makes a rule skip rows instead of rejecting the file.
_SKIPS = {
    "bad_rows": "--skip-bad-lines",
    "duplicates": "--duplicates last",
    "unknown_items": "--drop-unknown",
    "off_scale": 'off_scale = "clip" in the schema',
}


def _remark_on_rejection(source: lib.DataSource, reading: Reading, *, explain: bool) -> None:
    """Remark to owners who skip rows, or ask, which rules of their command could still reject the file."""
    if not isinstance(source, lib.Interactions) or source.schema is None:
        return
    chosen = (reading.duplicates or "refuse") != "refuse" or reading.skip_bad_lines or reading.drop_unknown
    by_schema = reading.schema is not None and (
        source.schema.duplicates != "refuse" or source.schema.unknown_items == "drop"
    )
    rules = lib.rejecting_rules(source) if chosen or by_schema or explain else []
    if rules and set(rules) <= set(_SKIPS):
        options = ", ".join(_SKIPS[rule] for rule in rules)
        remark(
            "discreet: one row could have rejected the whole file. So the label assumes that the acceptance "
            f"of the file is public. To skip such rows instead, use {options}."
        )


def _remark_on_age(estimator: lib.Estimator, source: lib.DataSource) -> None:
    """Remark to the data owner if all ratings are so old that they have faded: ages count from today."""
    half_life, times = getattr(estimator, "half_life", None), getattr(source, "times", None)
    if half_life is None or getattr(estimator, "now", None) is not None or times is None or not len(times):
        return
    days = (time.time() - float(times.max())) / 86_400
    if days > _FADED * half_life:
        remark(
            f"discreet: for you alone: the newest rating is {days:,.0f} days old, {days / half_life:,.0f} "
            "half-lives, so it has almost no weight. To count ages from a different day, pass "
            "--set now=DATE, a public date."
        )


def _wanted(estimator: lib.Estimator, *, for_synthesis: bool) -> lib.Estimator:
    """Return the estimator with the requested extra releases. Raise if its model can't be written."""
    if for_synthesis:
        estimator = _for_synthesis(estimator)
    if estimator.answers_in_process:
        raise OnlyInProcess(model=estimator.name)
    return estimator


def _required(out: Path | None) -> Path:
    if out is None:
        raise usage_error(OptionMissing(options=("--out FILE", "--dry-run")))
    return out


def _refuse_options(
    data: str,
    out: Path | None,
    reading: Reading,
    paying: Paying,
    titles: Path | None,
    *,
    force: bool,
    private_catalog: bool,
) -> None:
    """Raise, before anything is read, for an output that would overwrite an input, and for contradictions."""
    if out is not None:
        read = [*reading.files(data), *paying.files(), *([] if titles is None else [titles])]
        lib.refuse_model(out, force=force, inputs=read)
    if private_catalog and reading.items is not None:
        raise OptionsConflict(
            options=("--items", "--private-catalog"),
            why="the first declares the catalog and the second selects it with noise",
        )


def _plain_encoding(reading: Reading) -> str | None:
    """Return the encoding of tables next to the data; a mark shows that of UTF-16 files."""
    return None if str(reading.encoding).lower().replace("-", "") == "utf16" else reading.encoding


def _with_titles(estimator: lib.Estimator, titles: Path | None) -> lib.Estimator:
    """Return the model with the table of titles as its public item features."""
    if titles is None:
        raise OptionNeeds(
            options=("--use-titles",), needs="--titles FILE", why="it trains on the words of that table"
        )
    if "item_features" not in estimator.settings:
        raise UnsupportedByModel(
            model=estimator.name, option="--use-titles", why="it doesn't learn from public features"
        )
    if estimator.settings["item_features"] is not None:
        raise OptionsConflict(
            options=("--set item_features", "--use-titles"), why="both name the item features"
        )
    return estimator.clone(item_features=str(titles))


def _for_synthesis(estimator: lib.Estimator) -> lib.Estimator:
    """Return the model that also releases the numbers that synthetic data need."""
    if "for_synthesis" not in estimator.settings:
        raise UnsupportedByModel(
            model=estimator.name,
            option="--for-synthesis",
            why="only user-factorization releases the lengths of histories",
        )
    return estimator.clone(for_synthesis=True)


def _sharing(
    estimator: lib.Estimator, share: float, facts: lib.PublicFacts
) -> tuple[lib.Estimator, lib.PrivateFacts]:
    """Return the model with its part of the budget, and the selection of undeclared facts with the rest."""
    epsilon, delta = estimator.epsilon, estimator.delta
    chosen = lib.PrivateFacts.share_of(share, epsilon, delta, scale=lib.SCALE in facts.from_file)
    # Rounded down, so that the sum never exceeds the requested budget.
    rest = [
        math.nextafter(whole - part, 0.0)
        for whole, part in ((epsilon, chosen.epsilon), (delta, chosen.delta))
    ]
    return estimator.clone(epsilon=rest[0], delta=rest[1]), chosen


def _show_fit(
    fitted: lib.FittedModel, how_read: Mapping[str, str] | None, chosen: lib.PrivateFacts, written: str
) -> None:
    """Print the label and, if `how_read` is there, how the data were read and what the fit decided."""
    from discreet.cli.output.tables import decisions_table

    if how_read:
        show(reading_table(how_read))
    called = lib.titled(fitted.name, fitted.parameters)
    show(lib.label_table(fitted.guarantee, f"Privacy facts: {called}"))
    decisions = fitted.scorer.explain()
    if how_read is not None and decisions:
        show(decisions_table(decisions))
    elif how_read is not None:
        show("This model makes no decisions during the fit; its settings determine it.")
    facts = fitted.facts
    rated = "" if chosen.scale is None else f", with ratings from {facts.low:g} to {facts.high:g}"
    if chosen.catalog is not None:
        show(
            f"{facts.n_items:,} items were selected{rated}. Items with few users are skipped and never "
            "recommended. To declare a whole catalog, pass --items."
        )
    show(f"{written} {fitted.guarantee.sentence()}")


def refit(
    model: Path,
    data: Data,
    *,
    out: Path,
    reading: Reading,
    paying: Paying,
    epsilon: AnyEpsilon = None,
    titles: KeptTitles = None,
    force: Force = False,
    dry_run: bool = False,
) -> Output:
    """Fit a model on new data, with the settings of the last model, and record its cost.

    `user-factorization` on ratings uses the last model as a prior, which costs no more budget. Other models
    start from scratch.
    The catalog is the last model's, plus new items that --items lists. A declared scale,
    --max-per-user, and --people stay the same, unless you pass new values.
    With --ledger, the cost is recorded in the last model's account, unless you pass --name. Without --ledger,
    it isn't recorded.
    The titles are the last model's. To show titles of new items, pass a table of all items with --titles.

    Options:
        model: The last release: a model file.
        out: Where to write the next model.
        epsilon: The privacy loss. Default: the epsilon of the last release.
        dry_run: Only show the cost and the budget left after it.
    """
    paying.check()
    last = lib.load(model)
    # Both releases are about the same users, so they belong to one account, whatever the new file is called.
    if paying.name is None and last.origin is not None:
        paying = replace(paying, name=last.origin.account)
    estimator = _following(last, model, epsilon)
    reading = replace(reading, implicit=reading.implicit or _learns_from_choices(last))
    read = [model, *reading.files(data), *paying.files(), *([titles] if titles else [])]
    with paying.releasing(out, model, data, estimator, reading, titles, dry_run=dry_run) as release:
        if dry_run and (made := already_made(paying.ledger, release, out)) is not None:
            return made
        done = None if dry_run else paying.finished(release, out)
        if done is not None:
            return _refitted(done.model, out, done.name, [], paying)
        lib.refuse_model(out, force=force, inputs=read)
        catalog, news = _united(last.catalog, reading)
        loaded = reading.load(
            data, paying.name, catalog=catalog, scale=_declared_scale(last), remembered=last.schema
        )
        interactions = _as_known(loaded, last, reading)
        remark_on_delta([estimator], interactions.facts)
        for sentence in news:
            remark(f"discreet: {sentence}")
        book = paying.book(interactions.name, release)
        # An unreadable table is rejected before anything is spent.
        table = None if titles is None else lib.read_table(titles, _plain_encoding(reading))
        public, known = (
            (last.public, last.catalog)
            if table is None
            else (lib.read_columns(table, interactions.catalog), interactions.catalog)
        )
        if dry_run:
            return price(estimator, interactions, book, release=release)
        fitted = estimator.fit(interactions, ledger=book)
        remark_on_conditions(fitted.guarantee, schema=reading.schema)
        fitted = replace(fitted, public=lib.moved(public, known, fitted.catalog))
        published(fitted, out, release, force=force)
    return _refitted(fitted, out, interactions.name, news, paying)


def _refitted(fitted: lib.FittedModel, out: Path, name: str, news: list[str], paying: Paying) -> Output:
    """Return what was fitted, where it is, and where its cost was recorded."""
    promise = fitted.guarantee
    return Output(
        {"model": fitted.name, "file": str(out), "name": name, "guarantee": promise.to_json(), "news": news},
        " ".join(filter(None, [f"Written to {out}.", paying.recorded(name, promise), promise.sentence()])),
    )


def _following(last: lib.FittedModel, path: Path, epsilon: float | None) -> lib.Estimator:
    """Return the estimator of the last model, with a new epsilon and the last model as its prior."""
    settings: dict[str, Any] = dict(last.parameters)
    has_prior = "prior" in lib.model_settings.defaults(last.name)
    if has_prior and not (settings.get("feedback") == "implicit" or settings.get("purpose") == "lists"):
        settings["prior"] = str(path)
    else:
        settings |= {"prior": None} if has_prior else {}
        purpose = " for lists" if has_prior else ""
        remark(
            f"discreet: `{last.name}`{purpose} can't start from an earlier release, so this is a new fit "
            "with the same settings, on the rows of DATA alone. If DATA lacks the earlier rows, add their "
            "files with a comma between."
        )
    return lib.model_settings.estimator(
        last.name, settings | ({} if epsilon is None else {"epsilon": epsilon})
    )


def _learns_from_choices(last: lib.FittedModel) -> bool:
    """Return whether the last model was fitted to interactions without ratings."""
    return last.facts.low == last.facts.high


def _declared_scale(last: lib.FittedModel) -> tuple[float | None, float | None, float | None]:
    """Return the scale that was declared for the last model, if any."""
    facts = last.facts
    if {lib.SCALE, lib.CHOSEN_SCALE} & set(facts.from_file):
        return None, None, None
    return facts.low, facts.high, facts.step


def _as_known(data: lib.Interactions, last: lib.FittedModel, reading: Reading) -> lib.Interactions:
    """Return the data with facts that are exactly as public as the last model's.

    A catalog that came from the data stays marked as such. Facts selected with noise are public by now.
    Ratings outside a selected scale are clipped as before. A declared cap stays.
    """
    facts, before = data.facts, last.facts
    kept = [name for name in (lib.N_ITEMS, lib.CHOSEN) if name in before.from_file]
    facts = replace(facts, from_file=(*facts.from_file, *kept))
    if lib.CHOSEN_SCALE in before.from_file and reading.scale is None:
        names = [name for name in facts.from_file if name != lib.SCALE]
        facts = replace(
            facts, low=before.low, high=before.high, step=None, from_file=(*names, lib.CHOSEN_SCALE)
        )
    if reading.max_per_user is None:
        facts = facts.with_cap(before.max_per_user)
    if reading.people is None and facts.n_users is None:
        facts = replace(facts, n_users=before.n_users)
    return data.with_facts(facts)


def _united(known: lib.Vocabulary, reading: Reading) -> tuple[lib.Vocabulary, list[str]]:
    """Return the last catalog with newly declared items, and remarks about it."""
    from discreet.cli.options.parsing import read_items

    if reading.items is None:
        return known, []
    declared = read_items(reading.items)
    new = declared.ids[known.index_of(declared.series) < 0].tolist()
    news = (
        [f"--items added {len(new):,} {'item' if len(new) == 1 else 'items'} to the catalog."] if new else []
    )
    return (lib.Vocabulary.of([*known.ids.tolist(), *new]) if new else known), news
