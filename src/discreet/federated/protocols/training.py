"""Training over parties: it runs once, in a thread of its own, and waits there for each answer.

Training asks its session for sums as it always does. The session has no rows: each sum becomes a question,
and the thread waits until the parties' sum is handed in. A coordinator that restarts hands in the kept sums
of finished rounds first, so that training is run once per process, whatever the number of rounds.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, final

from discreet.core.arrays import Floats
from discreet.data.facts import PublicFacts
from discreet.data.vocabulary import Vocabulary
from discreet.federated.errors import MoreThanSums, OnlyGaussianShares, TrainingOutOfStep
from discreet.federated.noise import symmetric_from
from discreet.federated.protocols.asked import Asked
from discreet.models.scorers.scorer import Scorer
from discreet.privacy.mechanisms.additive import Gaussian
from discreet.privacy.queries import Releases
from discreet.statistics.statistic import Part, Statistic


class _Closed(BaseException):
    """The end of a training whose answers no one waits for any more; no handler of training catches it."""


@final
class RemoteUsers:
    """The users of all parties, as a coordinator sees them: public facts, and no row."""

    def __init__(self, facts: PublicFacts) -> None:
        self.facts, self.n_items = facts, facts.n_items
        # Names are for tables of items, which no run over parties has.
        self.catalog = Vocabulary.range(facts.n_items)
        # Parties do not state it; a party without times contributes nothing to sums over the order.
        self.has_times = True

    def __getattr__(self, name: str) -> Any:
        raise MoreThanSums(what=name)


@final
class RemoteTraining:
    """One training whose sums come from parties: what it asks next, and the model that it ends with.

    `train` receives the source of released sums, and runs in a thread that starts with the first question.
    Close it: a training that no one answers waits forever.
    """

    def __init__(self, train: Callable[[Releases], Scorer]) -> None:
        self._train = train
        self._asked: SimpleQueue[Asked | Scorer | BaseException] = SimpleQueue()
        self._answers: SimpleQueue[Floats | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._now: Asked | Scorer | None = None

    def question(self) -> Asked | None:
        """Return what training waits for, or None when it has ended."""
        if self._thread is None:
            run = contextvars.copy_context().run
            self._thread = threading.Thread(target=run, args=(self._run,), name="training", daemon=True)
            self._thread.start()
            self._now = self._next()
        return self._now if isinstance(self._now, Asked) else None

    def answer(self, numbers: Floats) -> None:
        """Hand in the sum that training waits for, as one array in the order of the wire."""
        if not isinstance(self._now, Asked):
            raise TrainingOutOfStep
        part = self._now.part
        self._now = None
        self._answers.put(symmetric_from(numbers) if part.symmetric else numbers.reshape(part.shape))
        self._now = self._next()

    def scorer(self) -> Scorer:
        """Return the model; raise if training still waits for a sum."""
        if self.question() is not None or not isinstance(self._now, Scorer):
            raise TrainingOutOfStep
        return self._now

    def close(self) -> None:
        """End a training that waits; one that has ended stays as it is."""
        if self._thread is not None and isinstance(self._now, Asked):
            self._now = None
            self._answers.put(None)
            self._thread.join()

    def _next(self) -> Asked | Scorer:
        found = self._asked.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def _run(self) -> None:
        try:
            self._asked.put(self._train(self))
        except _Closed:
            return
        except BaseException as error:
            # Raised where the coordinator waits, not in a thread that no one looks at.
            self._asked.put(error)

    def released(self, query: Any, asked: Sequence[tuple[Any, Any]], /) -> list[Floats]:
        """Return what the parties answer; called by the session, in the thread of the training."""
        return [self._released(query, part, noise) for part, noise in asked]

    def _released(self, statistic: Statistic, part: Part, noise: object) -> Floats:
        if not isinstance(noise, Gaussian):
            raise OnlyGaussianShares
        self._asked.put(Asked(statistic, part, noise.sigma))
        numbers = self._answers.get()
        if numbers is None:
            raise _Closed
        return numbers
