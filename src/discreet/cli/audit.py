"""`discreet model audit`: try to refute a model's privacy guarantee."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli import lib
from discreet.cli.errors import FittedModelGiven, OptionMissing, UnsupportedByModel
from discreet.cli.options.declared import Delta, Epsilon
from discreet.cli.options.parsing import listed
from discreet.cli.output.printing import Output
from discreet.core import FileExists, one_of

# Error probability of one attack's bound. A result also needs a fresh run at a tenth of it. So in a hundred
# audits of sound guarantees, the probability that any is called refuted is below 1 in 1,000.
_ERROR = 0.01


def audit(
    model: Annotated[str | None, typer.Argument(show_default=False)] = None,
    *,
    on_data: Annotated[str | None, "--model"] = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    settings: Annotated[list[str] | None, "--set"] = None,
    view: str | None = None,
    files: bool = False,
    questions: bool = False,
    quick: Annotated[bool, "--quick/--full"] = True,
    seconds: Annotated[float, typer.Option("--seconds", min=1.0)] = 60.0,
    page: Path | None = None,
    canaries: Annotated[int | None, typer.Option("--canaries", min=10)] = None,
    every: Annotated[bool, "--all"] = False,
    out: Path | None = None,
) -> Output:
    """Try to refute a model's privacy guarantee. "Not refuted" isn't a proof; the proofs are in proofs/.

    Options:
        model: The model to audit; with --model, your data instead.
        on_data: Fit this model once on your data, with canaries added.
        epsilon: The guarantee to audit.
        settings: Set an option of the model: key=value. May be repeated.
        view: What the attacker sees: transcript, file, synthetic (data drawn from the model) or report (of a
            device or a party). Separate several by commas.
        files: Also fit on neighboring files with unusual IDs, ratings, and times, and compare all output.
            Included in --full.
        questions: Also ask a federation's party the questions of a hostile coordinator. Included in --full.
        quick: Quick: a white-box audit of the mechanism calls. Full: also attack the released output.
        seconds: Approximate processor seconds of attacks per view.
        page: Write the findings to an HTML page.
        canaries: With --model: the number of canaries. Default: one per item.
        every: Audit every private model, and the recommended one's presets.
        out: Save findings to this JSON file. An existing file is resumed.
    """
    if (model is None) == (not every) or (every and on_data is not None):
        raise OptionMissing(options=("a model", "--all", "your data with --model"))
    if page is not None and page.exists():
        raise FileExists(path=page, replaceable=False)
    if on_data is None and model is not None:
        _refuse_file(model)
    if on_data is not None and model is not None:
        found = [_one_run(model, canaries, *_subjects(on_data, epsilon, delta, settings or []))]
    else:
        subjects = _subjects(model, epsilon, delta, settings or [])
        views = _views(view, quick=quick)
        if files and not any(map(lib.has_files, subjects)):
            why = "it doesn't protect whole users of a file"
            raise UnsupportedByModel(model="The model", option="--files", why=why)
        if questions and not any(map(lib.has_questions, subjects)):
            why = "it needs more than sums with Gaussian noise"
            raise UnsupportedByModel(model="The model", option="--questions", why=why)
        full = not quick and view is None
        edges = [name for name, asked in (("files", files), ("questions", questions)) if asked or full]
        found = _without_data(
            subjects, views, seconds, lib.KeptFindings(out), named=view is not None, edges=edges
        )
    if page is not None:
        one = model is not None and on_data is None
        games = lib.sample_games(_subjects(model, epsilon, delta, settings or [])[0]) if one else None
        lib.write_audit_page(page, found, games)
    return Output(
        [finding.to_json() for finding in found],
        lambda: _table(found),
        _MEANING,
        *_sentences(found),
        *([] if page is None else [f"Written to {page}."]),
        code=int(lib.any_refuted(found)),
    )


_MEANING = (
    "At least: the smallest epsilon that the outputs still allow. A guarantee is refuted if this number is "
    "larger than its epsilon. The white box computes the cost of the noise itself, so its number is close."
)


def _refuse_file(model: str) -> None:
    """Raise, with what to do, if a model file is named."""
    if not Path(model).is_file():
        return

    name = lib.read_label(Path(model))["name"]
    raise FittedModelGiven(path=str(model), model=name)


def _one_run(data: str, canaries: int | None, estimator: lib.Estimator) -> lib.Finding:
    spec = lib.open_data(data, implicit=estimator.feedback == "implicit")
    return lib.audit_one_run(estimator, spec, canaries=canaries)


def _without_data(
    subjects: list[lib.Estimator],
    views: list[str],
    seconds: float,
    kept: lib.KeptFindings,
    *,
    named: bool,
    edges: list[str],
) -> list[lib.Finding]:
    found: list[lib.Finding] = []
    for estimator in subjects:
        name = estimator.named
        audited = lib.fingerprint(estimator) if kept.is_written else ""
        once = partial(kept.once, name, estimator.epsilon, fingerprint=audited)
        found += once("white box", partial(lib.quick_audit, name, estimator))
        if "files" in edges and lib.has_files(estimator):
            found += once("files", partial(lib.audit_files, name, estimator))
        if "questions" in edges and lib.has_questions(estimator):
            found += once("questions", partial(_asked, name, estimator))
        # A view that wasn't asked for by name is skipped if a model doesn't have it.
        has = views if named else [one for one in views if one in lib.views_of(estimator)]
        for view in has:
            found += once(view, partial(_played, name, estimator, view, seconds))
    return found


def _asked(name: str, estimator: lib.Estimator) -> list[lib.Finding]:
    return [lib.audit_questions(name, estimator)]


def _played(name: str, estimator: lib.Estimator, view: str, seconds: float) -> list[lib.Finding]:
    if view == lib.REPORT and lib.REPORT not in lib.views_of(estimator):
        # If a model has no device reports, a party of a federation may have an audit.
        return [lib.price_a_party(name, estimator)]
    return [lib.play_view(name, estimator, view, seconds=seconds, error=_ERROR)]


def _views(view: str | None, *, quick: bool) -> list[str]:
    if view is None:
        return [] if quick else list(lib.VIEWS)
    chosen = listed(view)
    for one in chosen:
        one_of("--view", one, lib.VIEWS)
    return chosen


def _subjects(
    model: str | None, epsilon: float, delta: float | None, settings: list[str]
) -> list[lib.Estimator]:
    if model is None:
        names = sorted(
            name for name in lib.model_settings.MODELS if not lib.model_settings.is_never_private(name)
        )
        own: dict[str, Any] = {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
        more = [lib.model_settings.estimator(name, {**settings, **own}) for name, settings in lib.presets()]
        return [*lib.model_settings.estimators(names, [epsilon], delta), *more]
    chosen = {**lib.model_settings.parse_settings(model, settings), "epsilon": epsilon}
    if delta is not None:
        chosen["delta"] = delta
    return [lib.model_settings.estimator(model, chosen)]


def _table(found: list[lib.Finding]) -> lib.Table:
    curves = any(finding.curve is not None for finding in found)
    table = lib.Table(
        "model", "attack", "promised", "at least", *(["curve"] if curves else []), "fits", "verdict"
    )
    # Names may continue on the next line; headings and numbers are never cut.
    for column in table.columns:
        column.overflow = "fold"
        column.no_wrap = column.header not in ("model", "attack", "verdict")
    for finding in found:
        curve = "" if finding.curve is None else f"{finding.curve:.4g}"
        table.add_row(
            finding.model,
            finding.attack,
            f"{finding.promised:.4g}",
            f"{finding.refuted:.4g}",
            *([curve] if curves else []),
            f"{finding.fits:,}",
            finding.verdict,
        )
    return table


def _sentences(found: list[lib.Finding]) -> list[str]:
    return [
        f"{finding.model}, {finding.attack}: {note}"
        for finding in found
        if finding.broken
        for note in finding.notes
    ]
