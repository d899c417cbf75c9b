"""Errors of the service, its stores of reports, and its client."""

from __future__ import annotations

from pathlib import Path

from discreet.core.errors import DataError, FileError, ParameterError


class BadProxy(ParameterError):
    text = """{arg:trusted_proxy} isn't the address of a proxy or a network. Pass one, such as 127.0.0.1
    or 10.0.0.0/8."""


class CannotListen(FileError):
    host: str
    port: int
    why: str
    text = "{host}:{port} can't be used: {why}. Choose another {arg:port} or {arg:host}."


class KeyOfInvitationsNeeded(ParameterError):
    text = """This campaign invites devices, and the service must sign their tokens. Pass the campaign's
    invitation key with {arg:invitation_key}."""


class DifferentInvitationKey(ParameterError):
    text = """This isn't the invitation key that the campaign names, so devices would reject its tokens.
    Pass the key that was written with the campaign."""


class BadReportStore(ParameterError):
    text = """The address isn't the address of a store of reports, so reports can't be read or written. Name a
    store by sqlite:///FILE, postgresql://USER@HOST/DATABASE, or the path of a file."""


class NotAStore(FileError):
    path: Path
    text = "{path} isn't a store of reports, so it was not changed. Choose another path."


class DamagedStore(FileError):
    path: Path
    why: str
    text = "{path} can't be used: {why}. If the disk has space, restore the store from a backup."


class ReportStoreUnusable(FileError):
    path: Path
    text = "{path} can't be used as a store of reports. Check its folder, its permissions, and free space."


class EmptyStore(FileError):
    text = """This store doesn't contain a campaign yet, so it has no reports to fit a model to. Start it
    with `discreet serve`."""


class StoreOfAnother(DataError):
    text = "This store contains reports of a different campaign. Use one store per campaign."


class TooManyInvitations(DataError):
    most: int
    text = """A store contains at most {most} invitations, and these would be more. Ask for fewer. None
    was added."""


class ForeignReports(DataError):
    text = """The store contains reports that its campaign doesn't allow, so it was changed from outside.
    Restore it from a backup."""


class DatabaseForbids(FileError):
    text = """The database denies its user a permission, so reports can't be stored. Let the user create
    tables, or own the tables of this store."""


class DatabaseBusy(FileError):
    seconds: float
    text = "The database of reports is in use: no answer within {seconds:g} seconds. Try again later."


class DatabaseFails(FileError):
    """A database rejected a command of the store, or can't be reached."""

    reached: bool = True

    def template(self) -> str:
        """Return what happened; the server's own words may quote an address or a row."""
        if self.reached:
            return "The database of reports can't be used. See its log."
        return "The database of reports can't be reached. Check its address and whether it runs."


class BadServiceAddress(ParameterError):
    text = """{arg:url} isn't a secure address, so others could read or change messages. Begin it with
    https:// (or http:// on this machine)."""


class CampaignRejected(DataError):
    why: str
    text = "{why} Therefore, the service's campaign was rejected. Ask its organizer for a correct campaign."


class ServiceUnreachable(FileError):
    """A service doesn't answer, or its answer can't be read."""

    answered: bool = False

    def template(self) -> str:
        """Return what is known about what was sent."""
        if self.answered:
            return "The service's answer can't be read, so nothing is known to have arrived. Send it again."
        return "The service can't be reached. Check its address, and try again later."


class ServiceBusy(FileError):
    status: int
    detail: str
    text = "The service answered with status {status}: {detail}. Send it again later."


class ServiceRejected(DataError):
    status: int
    detail: str
    text = """The service answered with status {status}: {detail}. Correct the request. Sending it again
    doesn't help."""


class NoKeptRequest(FileError):
    path: Path
    text = """{path} doesn't contain a request for a token, so a token can't be made from it. Pass the file in
    which the request was kept."""


class DifferentDevice(ParameterError):
    path: Path
    text = """{path} belongs to a different device, and a device must not repeat its draws. Use one file
    per device."""
