"""Keep two kinds of randomness apart: noise that protects users, and seeds that repeat experiments.

Noise comes from `PrivacyRandom`, a stream of bytes from AES-256 in counter mode keyed by the operating
system. It has no seed. `PrivacyRandom.simulate(seed)` has one, and whatever it touches is marked
`simulated`: good for an experiment, worthless as protection. An audit may attach a `Recording` to a simulated
source, and to no other. Splits, synthetic data and starting points use `experiment_generator`, an ordinary
numpy generator that never reaches a mechanism.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NoReturn, Protocol, Self, final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from discreet.core.checks import integer
from discreet.core.errors import NotASource, ScriptTooShort

_CHUNK = 1 << 20
_ZEROS = bytes(_CHUNK)
# The advantage in distinguishing a block cipher in counter mode from true randomness is blocks^2 / 2^129. A
# new key every 2^28 blocks keeps it below 2^-72 a key, far under the 2^-60 we state for a draw.
_BYTES_PER_KEY = 1 << 32
# The cryptography library needs this much space after the last byte written.
_SLACK = 15

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


def _process() -> tuple[int, int]:
    """Identify this process; the fork count distinguishes a child from an earlier process with its id."""
    return os.getpid(), _forks


class _Stream:
    """One key, its cipher and the number of bytes left before the next key."""

    __slots__ = ("cipher", "key", "left", "lock", "process")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.cipher: CipherContext = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self.left = _BYTES_PER_KEY
        self.lock = threading.Lock()
        self.process = _process()


class Recording(Protocol):
    """Intercept the draws of a source, so that an audit can record and replay them."""

    def passing(self, draw: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Return the result of `draw(**arguments)`, or the one recorded earlier."""

    def exact(self, mechanism: object, values: npt.NDArray[Any]) -> None:
        """Record the exact values a mechanism is about to add noise to."""


@final
class PrivacyRandom:
    """Supply random bytes to the samplers.

    Threads may share one instance. After a fork, the child draws a new key from the operating system, so two
    processes never read the same stream. For the same reason, you can't pickle or copy an instance.

    Example:
        >>> PrivacyRandom.from_os().simulated
        False
        >>> PrivacyRandom.simulate(7).bytes(4).tolist() == PrivacyRandom.simulate(7).bytes(4).tolist()
        True

    Stability
        Stable.
    """

    __slots__ = ("_recording", "_script", "_stream", "simulated")

    simulated: bool
    _script: npt.NDArray[np.uint8] | None
    _stream: _Stream
    _recording: Recording | None

    def __init__(self) -> None:
        raise NotASource()

    @classmethod
    def _make(
        cls, key: bytes, *, simulated: bool, script: bytes | None = None, recording: Recording | None = None
    ) -> Self:
        source = object.__new__(cls)
        source._stream = _Stream(key)
        source._script = None if script is None else np.frombuffer(script, dtype=np.uint8)
        # Recorded draws are known to the auditor, so a source that protects users is never recorded.
        source._recording = recording if simulated else None
        source.simulated = simulated
        return source

    @classmethod
    def from_os(cls) -> Self:
        """Return a source keyed by the operating system: the only kind that protects users."""
        return cls._make(os.urandom(32), simulated=False)

    @classmethod
    def simulate(cls, seed: int) -> Self:
        """Return a repeatable source for experiments; everything it touches stays marked `simulated`."""
        return cls._make(_simulation_key(seed), simulated=True)

    @classmethod
    def recorded(cls, seed: int, recording: Recording) -> Self:
        """Return a simulated source whose draws all go through `recording`; for audits."""
        return cls._make(_simulation_key(seed), simulated=True, recording=recording)

    @classmethod
    def scripted(cls, script: bytes) -> Self:
        """Return a source that plays back `script` and raises when it is used up; for tests."""
        return cls._make(bytes(32), simulated=True, script=script)

    #: The recording that intercepts draws; None outside an audit. No one can attach one later.
    recording = property(attrgetter("_recording"))

    def unrecorded(self) -> PrivacyRandom:
        """Return the same stream without its recording, for the draw that is being recorded."""
        source = object.__new__(PrivacyRandom)
        source._stream, source._script, source._recording = self._stream, self._script, None
        source.simulated = self.simulated
        return source

    def token(self, count: int) -> bytes:
        """Return a key, an identifier or a seed of this many bytes; noise comes from `privacy` alone."""
        return self.bytes(count).tobytes()

    def spawn(self, name: str) -> PrivacyRandom:
        """Return an independent source: a fresh one, or, in a simulation, one determined by `name`."""
        if not self.simulated:
            return PrivacyRandom.from_os()
        if self._script is not None:
            raise NotASource()
        key = hashlib.sha256(self._stream.key + name.encode()).digest()
        return PrivacyRandom._make(key, simulated=True, recording=self._recording)

    def bytes(self, count: int) -> npt.NDArray[np.uint8]:
        """Return `count` fresh random bytes."""
        if type(count) is not int or count < 0:
            integer("count", count, least=0)
        if self._recording is not None:
            drawn: npt.NDArray[np.uint8] = self._recording.passing(self.unrecorded().bytes, {"count": count})
            return drawn
        if self._script is not None:
            return self._play(count)
        out = np.empty(count + _SLACK, dtype=np.uint8)
        view = memoryview(out.data)
        done = 0
        while done < count:
            size = min(_CHUNK, count - done)
            self._encrypt(size, view[done : done + size + _SLACK])
            done += size
        return out[:count]

    def _encrypt(self, size: int, target: memoryview) -> None:
        stream = self._stream
        if stream.process != _process():
            # The parent may have held the lock while it forked, so the child needs a new stream and lock.
            fresh = hashlib.sha256(stream.key + os.urandom(32)).digest() if self.simulated else os.urandom(32)
            stream = self._stream = _Stream(fresh)
        with stream.lock:
            if stream.left < size:
                stream.key = hashlib.sha256(stream.key).digest() if self.simulated else os.urandom(32)
                stream.cipher = Cipher(algorithms.AES(stream.key), modes.CTR(bytes(16))).encryptor()
                stream.left = _BYTES_PER_KEY
            stream.cipher.update_into(_ZEROS if size == _CHUNK else _ZEROS[:size], target)
            stream.left -= size

    def _play(self, count: int) -> npt.NDArray[np.uint8]:
        assert self._script is not None
        if count > self._script.size:
            raise ScriptTooShort(left=self._script.size, asked=count)
        played, self._script = self._script[:count], self._script[count:]
        return played.copy()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise NotASource()

    def __repr__(self) -> str:
        kind = "scripted" if self._script is not None else "simulated" if self.simulated else "from_os"
        return f"<PrivacyRandom {kind}>"


def _simulation_key(seed: int) -> bytes:
    integer("seed", seed, least=0)
    return hashlib.sha256(b"discreet simulation %d" % seed).digest()


def experiment_generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return a numpy generator for splits, synthetic data and starting points; never for noise.

    Each `purpose` has its own stream, so that a change of one use does not shift the others.
    """
    integer("seed", seed, least=0)
    digest = hashlib.sha256(repr((seed, purpose)).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))
