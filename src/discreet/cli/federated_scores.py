"""Measure a federation before there is one: parties together, one owner of all data, each party alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.cli.errors import OptionDoesNotApply
from discreet.cli.options.declared import Learning, Reading
from discreet.cli.options.measuring import Measuring
from discreet.cli.output.printing import emit, remark_on_delta, show

if TYPE_CHECKING:
    from rich.table import Table

    from discreet.data.interactions import Interactions
    from discreet.federated.comparison import PartyScores
    from discreet.federated.noise import SharedNoise
    from discreet.federated.protocols.choosing import Way
    from discreet.follow import FollowSettings


def show_scores(
    whole: Interactions,
    learning: Learning,
    reading: Reading,
    measuring: Measuring,
    noise: SharedNoise,
    way: Way,
    settings: FollowSettings | None,
    begins: str | None,
    *,
    as_json: bool,
) -> None:
    """Print how good a model, or a continual release, of all parties would be; nothing is released."""
    if settings is None:
        _show_fits(whole, learning, reading, measuring, noise, way, as_json=as_json)
    else:
        _show_year(whole, measuring, noise, settings, begins, as_json=as_json)


def _show_fits(
    whole: Interactions,
    learning: Learning,
    reading: Reading,
    measuring: Measuring,
    noise: SharedNoise,
    way: Way,
    *,
    as_json: bool,
) -> None:
    from discreet.core.progress import terminal_progress
    from discreet.federated.comparison import compare_parties

    estimator = learning.estimator(implicit=reading.implicit)
    remark_on_delta([estimator], whole.facts)
    with terminal_progress(None) as report:
        found = compare_parties(
            estimator,
            whole,
            noise,
            way=way,
            split=measuring.split,
            metrics=measuring.metrics,
            repeat=measuring.repeat,
            seed=measuring.seed,
            progress=report,
        )
    if as_json:
        emit(found.to_json())
        return
    private = estimator.promise(whole.facts).is_private
    same = (
        f"All rows with noise have the same guarantee. Together, parties add more noise than one data owner "
        f"would, so that {noise.missing} may be absent."
        if private
        else "No row has a guarantee: the noise is the printed noise, which protects no user."
    )
    one = "" if measuring.repeat > 1 else " One run can't show small differences: use --repeat 5."
    show(
        _table(found, f"{estimator.name}, {noise.parties} parties, epsilon {learning.epsilon:g} each"),
        f"{_directions(found)} {same} A party alone learns from its own users and is scored on them.",
        f"Nothing was released, and no budget was spent. Scores have no noise: don't publish them.{one}",
        *measuring.hints(next(iter(found.ways.values())), timed=whole.times is not None),
    )


def _directions(found: PartyScores) -> str:
    """Return a sentence that states which direction is better for each metric."""
    from discreet.evaluation.metrics import Metric

    named: dict[str, list[str]] = {}
    for name in next(iter(found.ways.values())):
        named.setdefault("Lower" if Metric.parse(name).lower_is_better else "Higher", []).append(name)
    return " ".join(f"{way} {' and '.join(names)} is better." for way, names in named.items())


def _table(found: PartyScores, title: str) -> Table:
    from rich.table import Table

    from discreet.evaluation.references import PREFIX

    metrics = list(next(iter(found.ways.values())))
    table = Table("who learns", *metrics, title=title)
    simple = {f"{name.removeprefix(PREFIX)}, without noise": scores for name, scores in found.simple.items()}
    for way, scores in {**found.ways, **simple}.items():
        cells = (scores.get(name) for name in metrics)
        table.add_row(way, *("-" if score is None else f"{score.mean:.4f}" for score in cells))
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _show_year(
    whole: Interactions,
    measuring: Measuring,
    noise: SharedNoise,
    settings: FollowSettings,
    begins: str | None,
    *,
    as_json: bool,
) -> None:
    from discreet.cli.output.years import replay_shown
    from discreet.core.progress import terminal_progress
    from discreet.data.epochs import seconds_of
    from discreet.follow.replay import replay_year

    if measuring != Measuring(seed=measuring.seed):
        raise OptionDoesNotApply(
            options=("--split", "--metric", "--repeat"),
            to="--follow",
            why="a replayed continual release has its own measurement",
        )
    moment = None if begins is None else seconds_of(begins, "begins")
    with terminal_progress(None) as report:
        found = replay_year(whole, settings, begins=moment, noise=noise, seed=measuring.seed, progress=report)
    if as_json:
        emit(found.to_json())
        return
    show(f"{noise.parties} parties follow together; fits and refits are those of one owner of all data.")
    show(*replay_shown(found))
