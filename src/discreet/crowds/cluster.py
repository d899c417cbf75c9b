"""Sum over a folder of shards on the workers of a Dask cluster, in a tree; the noise stays with the driver.

Workers open shards by path and return exact sums. A task of a worker that is lost runs again elsewhere and
returns the same sum, so nothing is drawn or paid twice: noise is drawn here, after the last sum came in.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self, final

from discreet.checks import FileError
from discreet.contributions.statistic import Statistic, Sums
from discreet.crowds.connecting import ClusterError, losses_as_sentences
from discreet.crowds.sameness import differences, fingerprint
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.shards.folder import ShardFolder, open_shards
from discreet.shards.stores import is_address

# So many sums are added by one task, so that they travel a few levels only; large ones in pairs, so that a
# worker never holds more than a few of them.
FAN_IN = 8
_BYTES_ADDED = 1 << 29
TASKS_PER_THREAD = 4


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterCrowd:
    """Hold a folder of shards as a crowd that a cluster sums over; workers see it by its path."""

    shards: ShardFolder
    client: Any

    @property
    def facts(self) -> PublicFacts:
        """Return what is public."""
        return self.shards.facts

    @property
    def catalog(self) -> Vocabulary:
        """Return all items."""
        return self.shards.catalog

    @property
    def name(self) -> str:
        """Return what the data are called in a ledger."""
        return self.shards.name

    @property
    def n_users(self) -> int:
        """Return how many people there are."""
        return self.shards.n_users

    @property
    def n_items(self) -> int:
        """Return how many items there are."""
        return self.shards.n_items

    @property
    def n_ratings(self) -> int:
        """Return how many ratings there are."""
        return self.shards.n_ratings

    @property
    def has_one_value(self) -> bool:
        """Tell whether all ratings are equal."""
        return self.shards.has_one_value

    def bounded(self) -> ClusterCrowd:
        """Return the same people: every block is bounded as it is read."""
        return self

    def refuse_mixed(self) -> None:
        """Refuse a cluster without workers, or one whose workers would compute other last bits."""
        # A worker without this package cannot even say so: it answers with an error.
        told = self.client.run(fingerprint, on_error="return")
        if not told:
            raise ClusterError("The cluster has no workers; start some with `dask worker HOST:PORT`.")
        found = {worker: theirs if isinstance(theirs, dict) else {} for worker, theirs in told.items()}
        other = {worker: differences(theirs) for worker, theirs in found.items() if differences(theirs)}
        if other:
            worker, names = next(iter(other.items()))
            raise ClusterError(
                f"{len(other)} of {len(found)} workers differ from this process ({worker}: "
                f"{', '.join(names)}); the last bits of sums would depend on where they are computed. Use "
                "workers with the same package, libraries and kind of processor."
            )

    def total(self, statistic: Statistic, /) -> Sums:
        """Return the exact sum of what everybody tells, added up in a tree on the workers."""
        with losses_as_sentences():
            return self._total(statistic)

    def _total(self, statistic: Statistic) -> Sums:
        client, report = self.client, self.shards.report
        # A task, not a scattered value: the scheduler can make it again when a worker is lost.
        there = client.submit(_same, statistic, pure=False)
        where, facts = Whereabouts.of(self.shards), self.shards.facts
        groups = self._groups()
        sums = [
            client.submit(_total_of, where, facts, one, there, fingerprint(), pure=False) for one in groups
        ]
        every = [there, *sums]
        if report is not None:
            done = iter(range(1, len(groups) + 1))
            for future in sums:
                future.add_done_callback(lambda _: report(next(done, len(groups)), len(groups)))
        width = fan_in(statistic)
        while len(sums) > 1:
            sums = [
                client.submit(_added, sums[at : at + width], pure=False) for at in range(0, len(sums), width)
            ]
            every += sums
        return self._result(sums[0], every)

    def _groups(self) -> list[list[int]]:
        """Cut the shards into tasks: few sums travel, and a lost task is a small loss."""
        tasks = min(self.shards.n_shards, TASKS_PER_THREAD * max(sum(self.client.ncores().values()), 1))
        return [list(range(at, self.shards.n_shards, tasks)) for at in range(tasks)]

    def _result(self, last: Any, every: list[Any]) -> Sums:
        try:
            result: Sums = last.result()
        except BaseException:
            # The cluster may be gone already.
            with suppress(Exception):
                self.client.cancel(every)
            raise
        return result


def fan_in(statistic: Statistic) -> int:
    """Return how many sums of a statistic one task adds."""
    size = 8 * sum(math.prod(part.shape) for part in statistic.parts)
    return max(2, min(FAN_IN, _BYTES_ADDED // max(size, 1)))


def on_cluster(shards: ShardFolder, client: Any) -> ClusterCrowd:
    """Return the shards as a crowd on a cluster, after checking that its workers are alike."""
    crowd = ClusterCrowd(shards=shards, client=client)
    crowd.refuse_mixed()
    return crowd


def _same(statistic: Statistic) -> Statistic:
    return statistic


class Whereabouts(NamedTuple):
    """Say where a folder of shards is, and by its seal which one: another one there is not meant."""

    address: str
    seal: str

    @classmethod
    def of(cls, shards: ShardFolder) -> Self:
        """Return where a folder is that was opened here."""
        return cls(shards.address, shards.manifest.seal)


@lru_cache(maxsize=4)
def opened_once(where: Whereabouts) -> ShardFolder:
    """Open a folder of shards on a worker, once in a process."""
    if not is_address(where.address) and not Path(where.address).is_dir():
        raise FileError(
            f"A worker does not see {where.address}; the folder must have one path on all machines."
        )
    shards = open_shards(where.address)
    if shards.manifest.seal != where.seal:
        raise FileError(
            f"A worker sees another folder at {where.address} than the driver does; they must be one."
        )
    return shards


def _total_of(
    where: Whereabouts,
    facts: PublicFacts,
    numbers: list[int],
    statistic: Statistic,
    expected: dict[str, str],
) -> Sums:
    """Sum over some shards on a worker; one that joined later is checked here."""
    names = differences(expected)
    if names:
        raise ClusterError(f"A worker differs from the driver ({', '.join(names)}) and was not used.")
    return replace(opened_once(where), facts=facts).total_of(numbers, statistic)


def _added(parts: list[Sums]) -> Sums:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
