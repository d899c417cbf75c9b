"""`discreet refit`: fit the next release with the settings of the last one, and start from it if possible."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from discreet.cli import lib
from discreet.cli.options.declared import AnyEpsilon, Data, Force, Paying, Reading
from discreet.cli.output.printing import Output, remark, remark_on_conditions, remark_on_delta
from discreet.cli.output.tables import price


def refit(
    model: Path,
    data: Data,
    *,
    out: Path,
    reading: Reading,
    paying: Paying,
    epsilon: AnyEpsilon = None,
    force: Force = False,
    dry_run: bool = False,
) -> Output:
    """Fit a model on new data, with the settings of the last model, and record its cost.

    `user-factorization` on ratings uses the last model as a prior, which costs no more budget. Other models
    start from scratch.
    The catalog is the last model's, plus new items that --items lists. A declared scale and a declared
    --max-per-user stay the same, unless you pass new values.
    Without --name, the cost is recorded in the last model's account.

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
    estimator = _next(last, model, epsilon)
    reading = replace(reading, implicit=reading.implicit or _learns_from_choices(last))
    read = [model, *reading.files(data), *paying.files()]
    with paying.releasing(None if dry_run else out, model, data, estimator, reading) as release:
        done = paying.finished(release, out)
        if done is not None:
            return _report(done.model, out, done.name, [], paying)
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
        if dry_run:
            return price(estimator, interactions, book)
        fitted = estimator.fit(interactions, ledger=book)
        remark_on_conditions(fitted.guarantee, schema=reading.schema)
        fitted = replace(fitted, public=lib.moved(last.public, last.catalog, fitted.catalog))
        fitted.save(out, force=force)
    return _report(fitted, out, interactions.name, news, paying)


def _report(fitted: lib.FittedModel, out: Path, name: str, news: list[str], paying: Paying) -> Output:
    """Return what was fitted, where it is, and where its cost was recorded."""
    promise = fitted.guarantee
    return Output(
        {"model": fitted.name, "file": str(out), "name": name, "guarantee": promise.to_json(), "news": news},
        " ".join(filter(None, [f"Written to {out}.", paying.recorded(name, promise), promise.sentence()])),
    )


def _next(last: lib.FittedModel, path: Path, epsilon: float | None) -> lib.Estimator:
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
            "with the same settings."
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
    return data.with_facts(facts)


def _united(known: lib.Vocabulary, reading: Reading) -> tuple[lib.Vocabulary, list[str]]:
    """Return the last catalog with newly declared items, and remarks about it."""
    from discreet.cli.options.parsing import read_items

    if reading.items is None:
        return known, []
    declared = read_items(reading.items)
    new = declared.ids[known.index_of(declared.series) < 0].tolist()
    gone = int((declared.index_of(known.series) < 0).sum())
    news = [f"{len(new)} items are new."] if new else []
    if gone:
        news.append(f"{gone} items of the last model aren't listed anymore; they stay in the catalog.")
    return (lib.Vocabulary.of([*known.ids.tolist(), *new]) if new else known), news
