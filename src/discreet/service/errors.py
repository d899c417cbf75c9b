"""Errors of the service, its stores of reports, and its client."""

from __future__ import annotations

from pathlib import Path

from discreet.core.errors import DataError, FileError, ParameterError


class BadProxy(ParameterError):
    """A declared proxy is neither an address nor a network."""

    text = "{arg:trusted_proxy} must be an address or a network, such as 127.0.0.1 or 10.0.0.0/8."


class CannotListen(FileError):
    """An address can't be used by the service."""

    host: str
    port: int
    why: str
    text = "{host}:{port} can't be used: {why}. Choose another {arg:port} or {arg:host}."


class KeyOfInvitationsNeeded(ParameterError):
    """A campaign that invites devices was served without its secret key."""

    text = "This campaign invites devices. Pass the key of its invitations with {arg:invitation_key}."


class DifferentInvitationKey(ParameterError):
    """A campaign was served with the secret key of a different one."""

    text = "This isn't the key of invitations that the campaign names. Pass the key that was written with it."


class BadReportStore(ParameterError):
    """A store has a name that isn't an address of a known database or a path."""

    text = "Name a store by sqlite:///FILE, postgresql://USER@HOST/DATABASE, or the path of a file."


class NotAStore(FileError):
    """A file isn't a store of reports."""

    path: Path
    text = "{path} isn't a store of reports and was not changed. Choose another path."


class DamagedStore(FileError):
    """A store is damaged, or its file can't be read or written any more."""

    path: Path
    why: str
    text = "{path} can't be used: {why}. If the disk has space, restore the store from a backup."


class ReportStoreUnusable(FileError):
    """A file can't be opened as a store of reports."""

    path: Path
    text = "{path} can't be used as a store of reports. Check its folder, its permissions, and free space."


class EmptyStore(FileError):
    """A store doesn't contain a campaign yet."""

    text = "This store doesn't contain a campaign yet. Start it with `discreet serve`."


class StoreOfAnother(DataError):
    """A store contains reports of a different campaign."""

    text = "This store contains reports of a different campaign. Use one store per campaign."


class TooManyInvitations(DataError):
    """A store would contain more invitations than it may."""

    most: int
    text = "A store contains at most {most} invitations. None was added."


class ForeignReports(DataError):
    """A store contains reports that its campaign doesn't allow."""

    text = "The store contains reports that its campaign doesn't allow. Restore it from a backup."


class DatabaseForbids(FileError):
    """A database doesn't let its user do what a store needs."""

    text = "The database rejects its user. Let that user create tables, or own the tables of this store."


class DatabaseBusy(FileError):
    """A database didn't answer, or gave no lock, in time."""

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
    """The address of a service has no scheme."""

    text = "{arg:url} must begin with https:// (or http:// on this machine)."


class CampaignRejected(DataError):
    """A service's campaign can't be used by a device."""

    why: str
    text = "{why} The service's campaign was rejected."


class ServiceUnreachable(FileError):
    """A service doesn't answer, or its answer can't be read."""

    answered: bool = False

    def template(self) -> str:
        """Return what is known about what was sent."""
        if self.answered:
            return "The service's answer can't be read, so nothing is known to have arrived. Send it again."
        return "The service can't be reached. Check its address, and try again later."


class ServiceBusy(FileError):
    """A service rejected a request for now."""

    status: int
    detail: str
    text = "The service answered with status {status}: {detail}."


class ServiceRejected(DataError):
    """A service rejected a request for good."""

    status: int
    detail: str
    text = "The service answered with status {status}: {detail}."


class NoKeptRequest(FileError):
    """A file doesn't contain a request for a token."""

    path: Path
    text = "{path} doesn't contain a request for a token. Choose another file."


class DifferentDevice(ParameterError):
    """A file belongs to a different device."""

    path: Path
    text = "{path} belongs to a different device. Use one file per device."
