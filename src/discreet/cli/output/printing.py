"""Print what a verb has to say: user text as it is, and one sentence where standard output cannot take it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from discreet.core.checks import FileError
from discreet.core.progress import logger

if TYPE_CHECKING:
    from rich.console import RenderableType


class UnreadError(Exception):
    """Tell that whoever read our output has gone, as `head` does when it has enough."""


def show(*parts: RenderableType) -> None:
    """Print tables and sentences for a person."""
    from discreet.cli.output.terminal import plain_console

    console = plain_console(stderr=False)
    with answering():
        for part in parts:
            console.print(part)


def emit(content: Mapping[str, Any] | list[Any]) -> None:
    """Print one JSON value and nothing else."""
    write(json.dumps(content))


def write(line: str) -> None:
    """Print one line as it is."""
    with answering():
        sys.stdout.write(line + "\n")


def remark(sentence: str) -> None:
    """Say something beside the answer, on standard error."""
    from discreet.cli.output.terminal import plain_console

    plain_console(stderr=True).print(sentence)


class _Remarks(logging.Handler):
    """Print what the library has to say beside the answer."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message."""
        remark(f"discreet: {record.getMessage()}")


def speak(*, verbose: bool) -> None:
    """Let the library's logger speak on standard error: warnings, and what is done if `verbose`."""
    logger.setLevel(logging.INFO if verbose else logging.WARNING)
    if not any(isinstance(handler, _Remarks) for handler in logger.handlers):
        logger.addHandler(_Remarks())


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Flush what is printed inside; a full disk is one sentence, a reader who left is not an error."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError as error:
        _drop_output()
        raise UnreadError from error
    except OSError as error:
        _drop_output()
        raise FileError(f"The answer cannot be written to standard output: {error.strerror}.") from error


def _drop_output() -> None:
    """Send what is still buffered nowhere, or Python would complain about it once more at the end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
