"""`discreet evaluate` and `discreet compare`: measure models on held-out data, with noise or without."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, final

import typer

from discreet.cli import lib
from discreet.cli.errors import OptionDoesNotApply, OptionNeeds
from discreet.cli.options.declared import (
    UNRECORDED,
    ByGroup,
    Data,
    Delta,
    Force,
    Learning,
    Measuring,
    On,
    Paying,
    Privately,
    Purpose,
    Reading,
    opened,
    refuse_without_ratings,
)
from discreet.cli.options.parsing import command_line, complete_models, listed, numbers, parse_columns
from discreet.cli.output.printing import (
    Output,
    emit,
    remark,
    remark_on_conditions,
    remark_on_delta,
    show,
    show_next,
    table_of,
)
from discreet.cli.output.tables import already_made, price
from discreet.core import name_aside, terminal_progress, without_password, write_whole
from discreet.papers import titled
from discreet.report import condition_text


def evaluate(
    data: Data,
    *,
    learning: Learning,
    measuring: Measuring,
    groups: ByGroup,
    reading: Reading,
    privately: Privately,
    paying: Paying,
    on: On = None,
    out: Path | None = None,
    force: Force = False,
) -> Output:
    """Evaluate a model on a held-out part of the data, next to simple baselines.

    Don't publish scores without --private: they have no noise. --private spends the budget of a fit, so keep
    its model with --out.

    Options:
        out: Where to write a report (HTML) or, with --private, the fitted model. Default: write neither.
    """
    estimator = learning.estimator(implicit=reading.implicit, reading=reading)
    if privately.asked(paying):
        given = {"--by": groups.by, "--user-features": groups.user_features}
        if unused := [name for name, value in given.items() if value is not None]:
            why = "private scores are one number per metric, for all users"
            raise OptionDoesNotApply(options=tuple(unused), to="--private", why=why)
        keep = None if out is None else _Kept(path=out, force=force)
        return measure_privately([estimator], data, measuring, reading, privately, paying, on, keep)
    if out is not None:
        measuring.refuse_report(out, data, reading, force=force)
    result, timed, held_out = _measured(estimator, data, measuring, groups, reading, on)
    title = f"{titled(estimator.name, estimator.settings)} on {without_password(data)}"
    if out is not None:
        lib.write_report([result], out, title=title, remarks=[f"Held out: {held_out}."], force=force)
    runs = "" if measuring.repeat > 1 else " One run can't show small differences: use --repeat 5."
    what = "interactions" if reading.implicit else "ratings"
    return Output(
        result.to_json(),
        lambda: _table(result, f"{title}; held out: {held_out}"),
        lambda: _groups(result, groups.by),
        f"`evaluate` doesn't save its models. Their label would state: {result.guarantee.short()}",
        f"The scores are computed from held-out {what} without noise: don't publish them.{runs}",
        *_advice(estimator, result, measuring, timed=timed),
    )


#: Remark about a model with two purposes where only ratings are scored.
ALSO_LISTS = (
    "also learns recommendations from the same budget. --metric hr@10 scores them. --for ratings spends the "
    "whole budget on ratings."
)


def _advice(
    estimator: lib.Estimator, result: lib.Evaluation, measuring: Measuring, *, timed: bool
) -> list[str]:
    """Return advice from the scores: a baseline is as good, or the budget is shared."""
    said = measuring.hints(result.metrics, timed=timed)
    behind = {name: of for name in result.metrics if (of := _not_behind(result, name))}
    if behind and result.guarantee.epsilon < float("inf"):
        simpler = "popularity" if "popularity" in behind.values() else "biases"
        other = f", or use the simpler --model {simpler}" if estimator.name != simpler else ""
        said.append(
            f"{' and '.join(behind)}: no better than {' and '.join(sorted(set(behind.values())))} without "
            f"noise. More users or a larger epsilon may help{other}. `discreet try` shows whether they do."
        )
    if measuring.metrics is None and getattr(estimator, "purpose", "") == "both" and "rmse" in result.metrics:
        said.append(f"This model {ALSO_LISTS}")
    return said


def _not_behind(result: lib.Evaluation, name: str) -> str:
    """Return the best simple baseline of a metric if the model does not beat it, else nothing."""
    value, of = lib.best_baseline([result], name)
    if not of:
        return ""
    sign = 1 if lib.Metric.parse(name).lower_is_better else -1
    return of if sign * result.metrics[name].mean >= sign * value else ""


def _baseline(result: lib.Evaluation, name: str) -> str:
    """Return the best baseline. If none is best, return all of them, so that a score can be compared."""
    value, of = lib.best_baseline([result], name)
    if of:
        return f"{value:.4f} ({of})"
    known = {of.removeprefix(lib.BASELINE_PREFIX): scores for of, scores in result.references.items()}
    return "\n".join(f"{scores[name].mean:.4f} ({of})" for of, scores in known.items() if name in scores)


def _measured(
    estimator: lib.Estimator,
    data: str,
    measuring: Measuring,
    groups: ByGroup,
    reading: Reading,
    on: str | None,
) -> tuple[lib.Evaluation, bool, str]:
    """Return the scores, whether the data have times, and what was held out."""
    with terminal_progress(None) as report, opened(data, reading, None, on, report) as source:
        remark_on_delta([estimator], source.facts)
        result = lib.evaluate(
            estimator,
            source,
            split=measuring.split,
            metrics=measuring.metrics,
            repeat=measuring.repeat,
            seed=measuring.seed,
            item_features=measuring.item_features,
            by=groups.by,
            user_features=groups.user_features,
            progress=report,
            # They are fitted on rows in memory.
            references=isinstance(source, lib.Interactions),
            folder=None if lib.is_shard_folder(data) else lib.folder_of(data, reading.layout),
            columns=parse_columns(reading.columns),
        )
        timed = getattr(source, "times", None) is not None
        return result, timed, measuring.plan(result.metrics, source).held_out(timed=timed)


def _groups(result: lib.Evaluation, by: str | None) -> lib.Table | None:
    """Return a table with a row for each group and metric, if groups were asked for."""
    if not result.groups:
        return None
    return table_of(lib.GROUP_HEADER, lib.group_rows(result), title=f"By {by}")


def _table(result: lib.Evaluation, title: str) -> lib.Table:
    """Return a row for each metric: the model's score, which way is better, and baselines."""
    rows = [
        (
            name,
            f"{score.mean:.4f}",
            f"{score.std:.4f}" if len(score.values) > 1 else "-",
            str(len(score.values)),
            "lower" if lib.Metric.parse(name).lower_is_better else "higher",
            _baseline(result, name) or "-",
        )
        for name, score in result.metrics.items()
    ]
    return table_of(("metric", "mean", "std", "runs", "better", "simple baseline"), rows, title=title)


def compare(
    data: Data,
    *,
    models: Annotated[str | None, typer.Option("--models", autocompletion=complete_models)] = None,
    epsilons: str | None = None,
    out: Path | None = None,
    measuring: Measuring,
    reading: Reading,
    privately: Privately,
    paying: Paying,
    delta: Delta = None,
    purpose: Purpose = None,
    resume: Path | None = None,
    force: Force = False,
) -> Output:
    """Compare several models on the same held-out part of the data, in a table and on an HTML page.

    Options:
        models: Models, comma-separated. Settings may follow: user-factorization:feedback=implicit. Default:
            user-factorization and its simplest alternative.
        epsilons: Values of epsilon, comma-separated; inf means no privacy. Default: 1,5,inf.
        out: Where to write a report (HTML). Default: no report.
        resume: Save results to this file as they are measured, and skip those it already has.
    """
    chosen = _chosen(models, epsilons, delta, purpose, reading, private=privately.private)
    if privately.asked(paying):
        scores = measure_privately(chosen, data, measuring, reading, privately, paying)
        if out is not None:
            remark("discreet: private scores are printed; --out was not used.")
        return scores

    folder = lib.folder_of(data, reading.layout)
    if out is not None:
        measuring.refuse_report(out, data, reading, force=force)
    interactions = reading.load(data)
    remark_on_delta(chosen, interactions.facts)
    found = _compared(chosen, interactions, measuring, reading, folder, resume)
    timed = interactions.times is not None
    metrics = dict.fromkeys(name for one in found for name in one.metrics)
    held_out = measuring.plan(metrics, interactions).held_out(timed=timed)
    hints = _hints(chosen, found, measuring, timed=timed)
    if out is not None:
        said = [f"Held out: {held_out}.", *hints]
        lib.write_report(found, out, title=f"Models on {without_password(data)}", remarks=said, force=force)
    return Output(
        {"report": None if out is None else str(out), "evaluations": [one.to_json() for one in found]},
        lambda: _show_comparison(found, data, held_out, out, hints),
    )


_USUAL_EPSILONS = "1,5,inf"
# The first models of the README, by feedback.
_USUAL_MODELS = {False: "user-factorization,biases", True: "user-factorization,popularity"}


def _chosen(
    models: str | None,
    epsilons: str | None,
    delta: float | None,
    purpose: str | None,
    reading: Reading,
    *,
    private: bool,
) -> list[lib.Estimator]:
    """Return every model at every epsilon; raise for options that don't go together."""
    levels = numbers("--epsilons", ("1" if private else _USUAL_EPSILONS) if epsilons is None else epsilons)
    if private and len(levels) != 1:
        raise OptionNeeds(
            options=("--private",),
            needs="one epsilon, as in --epsilons 1",
            why="all models are measured together at one cost",
        )
    lists = reading.implicit or purpose == "lists"
    named = listed(_USUAL_MODELS[lists] if models is None else models)
    chosen = lib.estimators(named, levels, delta, implicit=reading.implicit, purpose=purpose)
    if reading.implicit:
        refuse_without_ratings(chosen, reading)
    return chosen


def _compared(
    chosen: Sequence[lib.Estimator],
    data: lib.Interactions,
    measuring: Measuring,
    reading: Reading,
    folder: Path | None,
    resume: Path | None,
) -> lib.Comparison:
    with terminal_progress(None) as report:

        def announce(one: lib.Estimator) -> None:
            remark(_progress(one, chosen))
            report("compare models", _place(one, chosen) - 1, len(chosen))

        return lib.compare(
            chosen,
            data,
            split=measuring.split,
            metrics=measuring.metrics,
            repeat=measuring.repeat,
            seed=measuring.seed,
            item_features=measuring.item_features,
            folder=folder,
            columns=parse_columns(reading.columns),
            announce=announce,
            keep=resume,
        )


def _hints(
    chosen: Sequence[lib.Estimator], found: lib.Comparison, measuring: Measuring, *, timed: bool
) -> list[str]:
    """Return remarks that the scores don't show: shared budgets, and rows that look alike."""
    metrics = dict.fromkeys(name for one in found for name in one.metrics)
    said = measuring.hints(metrics, timed=timed)
    shared = [one.name for one in chosen if getattr(one, "purpose", "") == "both"]
    if shared and list(metrics) == ["rmse"]:
        said.append(f"{shared[0]} {ALSO_LISTS}")
    if any(one.name == "popularity" for one in chosen):
        said.append(
            "The model popularity counts every user equally, however long the history, even at epsilon inf. "
            "The baseline popularity counts every interaction. So the two differ even without noise."
        )
    return said


def _show_comparison(
    found: lib.Comparison, data: str, held_out: str, out: Path | None, hints: Sequence[str]
) -> None:
    """Print the scores, and below them what privacy costs by each metric."""
    from discreet.cli.output.tables import comparison_table

    metrics = dict.fromkeys(name for one in found for name in one.metrics)
    said = [f"{name}: {' '.join(lib.cost_of_privacy(found, name))}" for name in metrics]
    luck = [lib.ran_once(found)] if lib.ran_once(found) else []
    page = "--out FILE.html writes a page with charts." if out is None else f"Written to {out}."
    title = f"Models on {without_password(data)}; held out: {held_out}"
    show(comparison_table(found, title), *said, *luck, *hints)
    show(f"{page} The scores have no noise: do not publish them.")


def _progress(one: lib.Estimator, chosen: Sequence[lib.Estimator]) -> str:
    """Return the position of the current fit, with its settings."""
    return f"{_place(one, chosen)} of {len(chosen)}: {one.named} at epsilon {one.epsilon:g}"


def _place(one: lib.Estimator, chosen: Sequence[lib.Estimator]) -> int:
    return next(number for number, other in enumerate(chosen, start=1) if other is one)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The file of the model that private scores are about.

    The scores and the model are one draw. The model waits next to its place until the scores are on the disk
    and the spending is done.
    """

    path: Path
    force: bool

    def check(self, data: str, reading: Reading, paying: Paying) -> None:
        """Raise, before any budget is spent, if the model would overwrite something else."""
        lib.refuse_model(self.path, force=self.force, inputs=[*reading.files(data), *paying.files()])

    @property
    def aside(self) -> Path:
        """Where the model waits."""
        return self.path.with_name(f"{name_aside(self.path)}.model")

    def put(self, model: lib.FittedModel, release: lib.PaidRelease | None) -> list[tuple[Path, Path]]:
        """Write the model and return what is left to move to its place: without a ledger, nothing."""
        model.save(self.path if release is None else self.aside, force=self.force or release is not None)
        return [] if release is None else [(self.aside, self.path)]


def measure_privately(
    estimators: Sequence[lib.Estimator],
    data: str,
    measuring: Measuring,
    reading: Reading,
    privately: Privately,
    paying: Paying,
    on: str | None = None,
    keep: _Kept | None = None,
) -> Output:
    """Fit and score under one guarantee, or show the cost of doing that."""
    paying.check()
    if not privately.private and privately.dry_run:
        note = "Without --private the scores cost no budget. They have no noise, so don't publish them."
        return Output({"note": note}, note)
    _refuse_options(measuring, privately)
    metrics = measuring.metrics or _usual(estimators)
    # The scores are on the disk before they are printed, so a repeated run after a kill prints the same
    # scores.
    out = None if paying.ledger is None else Path(f"{paying.ledger}.scores.json")
    dry_run, asked = privately.dry_run, replace(privately, dry_run=False)
    with (
        terminal_progress(None) as report,
        paying.releasing(
            out, data, estimators, measuring, asked, reading, keep, made="score", dry_run=dry_run
        ) as release,
        opened(data, reading, paying.name, on, report) as source,
    ):
        if dry_run and (done := already_made(paying.ledger, release, out)) is not None:
            return done
        if out is not None and not dry_run and paying.continued(release, out) is not None:
            drawn = json.loads(out.read_text("utf-8"))
            return Output(drawn, lambda: emit(drawn))
        if keep is not None:
            keep.check(data, reading, paying)
        remark_on_delta(estimators, source.facts)
        book = paying.book(source.name, release)
        begun = release is not None and release.has_begun
        if book is not None and keep is None and len(estimators) == 1 and not begun:
            facts = source.facts
            book.price(source.name, estimators[0].promise(facts), estimators[0].events(facts))
            remark(
                "discreet: most of the budget is spent on a model that isn't kept. To keep it, stop with "
                "Ctrl-C, and pass --out FILE."
            )
        if dry_run:
            noise = partial(_forecast, estimators, metrics, privately.share, source.facts)
            recorded = lib.spending_together(estimators, source, book)
            return price(estimators[0], source, book, noise, release=release, recorded=recorded)
        found = lib.fit_and_evaluate(
            estimators, source, metrics=metrics, share=privately.share, ledger=book, progress=report
        )
        names = _names(estimators)
        content = {**_as_json(found, names), "name": source.name}
        if paying.ledger is not None:
            shown = ("discreet", "budget", "show", str(paying.ledger))
            content["next"] = command_line(*shown, options={"--name": source.name})
        beside = [] if keep is None else keep.put(found.models[0], release)
        if release is not None:
            write_whole(release.draft, json.dumps(content).encode())
            release.publish(*beside)
        if keep is not None:
            content |= {"file": str(keep.path)}
    remark_on_conditions(found.guarantee, schema=reading.schema)
    said = []
    if keep is not None:
        own = found.models[0].guarantee.epsilon
        said.append(
            f"Written to {keep.path}: the model with these scores. The model alone has epsilon "
            f"{own:.4g}, because the scores use a part of the budget."
        )
    elif len(estimators) == 1 and paying.ledger is None:
        said.append("The model isn't kept. To keep the model of the next private scores, pass --out FILE.")
    said += [paid] if (paid := paying.paid(source.name)) else []
    return Output(
        content,
        lambda: _show_private(found, names, recorded=paying.ledger is not None),
        *said,
        lambda: show_next(str(content["next"])) if "next" in content else None,
    )


def _refuse_options(measuring: Measuring, privately: Privately) -> None:
    """Raise for options that private scores need, or don't use."""
    if not privately.private:
        raise OptionNeeds(
            options=("--ledger", "--name", "--allow-unbudgeted"),
            needs="--private",
            why="they record what private scores cost",
        )
    if unused := measuring.unused_privately:
        raise OptionDoesNotApply(
            options=tuple(unused),
            to="--private",
            why="private scores come from one run with real noise and one held-out item per user",
        )


def _forecast(
    estimators: Sequence[lib.Estimator], metrics: list[str], share: float, facts: lib.PublicFacts
) -> str:
    """Return how much noise scores would have, before any budget is spent."""
    found = lib.expected_noise(estimators, metrics, share=share, facts=facts)
    if found is None:
        return "Pass --people to show how much noise the scores would have."
    said = ", ".join(f"± {1.96 * noise:.2g} on {name}" for name, noise in found.items())
    return (
        f"With {facts.n_users:,} users the noise would be about {said}, with 95% confidence. A --share "
        f"larger than {share:g} makes it smaller, and the model slightly worse."
    )


def _usual(estimators: Sequence[lib.Estimator]) -> list[str]:
    """Return the default metric: only one, because every further metric adds noise to all."""
    return ["rmse"] if all(one.predicts_ratings for one in estimators) else ["hr@10"]


def _names(estimators: Sequence[lib.Estimator]) -> list[str]:
    """Return the name of each. Variants of one model also have their settings."""
    names = [one.name for one in estimators]
    return [one.name if names.count(one.name) == 1 else one.named for one in estimators]


def _as_json(found: lib.Together, names: list[str]) -> dict[str, object]:
    scores = {
        metric: {name: one.to_json() for name, one in zip(names, values, strict=True)}
        for metric, values in found.scores.items()
    }
    proof = {} if found.certificate is None else {"certificate": found.certificate}
    best = _best(found, names)
    return {"scores": scores, "best": best, "guarantee": found.guarantee.to_json(), **proof}


def _best(found: lib.Together, names: list[str]) -> dict[str, str]:
    return {
        metric: lib.best_of(dict(zip(names, values, strict=True))) for metric, values in found.scores.items()
    }


def _show_private(found: lib.Together, names: list[str], *, recorded: bool) -> None:
    rows = [
        (metric, name, f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}", f"± {1.96 * one.noise:.4f}")
        for metric, values in found.scores.items()
        for name, one in zip(names, values, strict=True)
    ]
    show(table_of(("metric", "model", "score", "95% interval", "noise alone"), rows))
    best = _best(found, names)
    for metric, values in found.scores.items():
        show(_verdict(metric, values, best[metric]))
    show(
        f"Models and scores together: {found.guarantee.short()}",
        f"These scores {_may(found.guarantee)}. One item of each user was held out for them.",
    )
    if not recorded and found.guarantee.is_private:
        show(UNRECORDED)


def _may(promise: lib.Guarantee) -> str:
    """Return whether scores may be published."""
    if not promise.is_private:
        return "are not private: do not publish them"
    condition = condition_text(promise.conditions)
    only = f" only if {condition}" if condition else ""
    return f"may be published{only}"


# Noise beyond this share of a score hides what models usually differ by.
_LARGE = 0.1


def _verdict(metric: str, values: Sequence[lib.PrivateScore], best: str) -> str:
    """Return which model is best, or that the noise is larger than any difference."""
    noise = 1.96 * max(one.noise for one in values)
    if len(values) == 1:
        if noise <= _LARGE * abs(values[0].value):
            return f"The noise on {metric} is ± {noise:.2g} with 95% confidence."
        return (
            f"The noise on {metric} is ± {noise:.2g}, more than a tenth of the score: it is too large to "
            "judge a model by. More users, a larger --share, or a larger epsilon would help."
        )
    apart = max(one.value for one in values) - min(one.value for one in values)
    # Noise of a difference.
    noise *= math.sqrt(2)
    if apart > noise:
        return f"Best by {metric}: {best}."
    return (
        f"{metric} can't separate these models: the noise on a difference, ± {noise:.2g}, is larger "
        f"than any difference (at most {apart:.2g})."
    )
