"""Errors of repeated experiments: files of claims, results, and copies of datasets."""

from __future__ import annotations

from discreet.core.errors import DiscreetError, FileError


class BadClaims(DiscreetError):
    path: object
    entry: str
    must: str
    text = "{path}: the entry {entry!r} must {must}. Correct the file."


class FullRunKept(FileError):
    folder: object
    size: str
    text = "{folder} has a full run, which a {size} run can't replace. Choose a different folder."


class NotResults(FileError):
    path: object
    text = "{path} has no results of a paper that can be read. Remove it, and run the paper again."
