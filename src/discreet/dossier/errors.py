"""Errors of dossiers, statements and registry entries."""

from __future__ import annotations

from discreet.core.errors import ParameterError


class NoReleases(ParameterError):
    dataset: str
    known: tuple[str, ...]
    text = """The ledger has no release about {dataset!r}. It has releases about {known:and}. Choose one of
    them."""

    def template(self) -> str:
        """Return the template; a ledger may have a budget and no release yet."""
        if self.known:
            return self.text
        return (
            "The ledger has no release yet, so a statement about {dataset!r} has nothing to state. Pass the "
            "ledger that recorded your fits."
        )


class UnknownEntries(ParameterError):
    dataset: str
    entries: tuple[int, ...]
    text = """The ledger has no entries {entries:and} of {dataset!r}. `discreet budget show` lists the
    entries. Pass some of them."""


class NoLedgerEntry(ParameterError):
    names: tuple[str, ...] = ()
    text = """The ledger doesn't have exactly one dataset with this model's guarantee{among}. Pass {arg:name},
    or the right ledger."""

    @property
    def among(self) -> str:
        """The datasets that have such an entry."""
        return f" (candidates: {', '.join(map(repr, self.names))})" if self.names else ""


class NoGuarantee(ParameterError):
    what: str
    text = """This release has no guarantee that protects users, so {what} can't be written. Fit a private
    model with real noise."""


class UnknownFact(ParameterError):
    path: object
    name: str
    known: tuple[str, ...]
    text = "{path} states {name!r}, which isn't a fact of a dossier. Use one of {known:all}."


class BadFact(ParameterError):
    name: str
    form: str
    text = "{name} isn't {form}, and a dossier needs that form. Change the line, or remove it."
