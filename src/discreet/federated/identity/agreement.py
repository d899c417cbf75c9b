"""The agreement of all members of a run, in a public file of which each member has a copy.

The run's name ends with a digest of the agreement, and every message carries that name: a member whose
agreement differs in a single number is in another run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

from discreet.core import filled_folder
from discreet.data import PublicFacts, Vocabulary
from discreet.federated.errors import BadAddress, BadMember, NotAgreedCatalog, NotAnAgreement
from discreet.federated.identity.keys import (
    Authority,
    PublicKey,
    key_text,
    new_key,
    read_key_text,
    write_secret,
)
from discreet.federated.noise import SharedNoise
from discreet.federated.protocols.protocol import names_digest

COORDINATOR, KEEPER, AUTHORITY = "coordinator", "keeper", "authority"
_FILE, _ITEMS = "agreement.json", "items.json"
_FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The model and its budget, the parties, and the members' keys and addresses.

    `recipe` is the model and its settings as TOML, `addresses` has those of coordinator and keeper, and
    `keys` has the public key of every member by name.
    """

    recipe: str
    facts: PublicFacts
    catalog: Vocabulary
    missing: int
    parties: tuple[str, ...]
    addresses: Mapping[str, str]
    keys: Mapping[str, str]
    label: str = "run"

    def __post_init__(self) -> None:
        for name in (*self.parties, self.label):
            if not _NAME.fullmatch(name) or name in (COORDINATOR, KEEPER, AUTHORITY):
                raise BadMember(name=name)
        for names in (self.parties, tuple(self.keys.values())):
            for name in names:
                if names.count(name) > 1:
                    raise BadMember(name=name)
        for name in set(self.keys) ^ {*self.parties, COORDINATOR, KEEPER}:
            raise BadMember(name=name)

    @property
    def noise(self) -> SharedNoise:
        """Return the shares of noise of the parties."""
        return SharedNoise(parties=len(self.parties), missing=self.missing)

    @property
    def run(self) -> str:
        """Return the run's name, which no other agreement has."""
        text = json.dumps(self._record(), sort_keys=True)
        return f"{self.label} {hashlib.sha256(text.encode()).hexdigest()[:32]}"

    def key(self, name: str) -> PublicKey:
        """Return a member's public key."""
        return read_key_text(self.keys[name])

    def address(self, name: str) -> tuple[str, int]:
        """Return the address of the coordinator or the keeper."""
        return read_address(self.addresses[name])

    def members(self) -> dict[str, str]:
        """Return the members' names by key."""
        return {key: name for name, key in self.keys.items()}

    def write(self, folder: Path) -> None:
        """Write the agreement into a member's folder."""
        write_secret(folder / _FILE, json.dumps(self._record(), indent=2).encode())
        write_secret(folder / _ITEMS, json.dumps(self.catalog.ids.tolist()).encode())

    def _record(self) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "label": self.label,
            "recipe": self.recipe,
            "facts": self.facts.to_json(),
            "items": names_digest(self.catalog),
            "missing": self.missing,
            "parties": list(self.parties),
            "addresses": dict(self.addresses),
            "keys": dict(self.keys),
        }

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read a member's copy; reject an invalid one."""
        try:
            record = json.loads((folder / _FILE).read_text(encoding="utf-8"))
            catalog = Vocabulary.of(json.loads((folder / _ITEMS).read_text(encoding="utf-8")))
            if record["format"] != _FORMAT:
                raise NotAnAgreement(folder=folder)
            found = cls(
                recipe=str(record["recipe"]),
                facts=PublicFacts.from_json(record["facts"]),
                catalog=catalog,
                missing=record["missing"],
                parties=tuple(map(str, record["parties"])),
                addresses={str(name): str(address) for name, address in record["addresses"].items()},
                keys={str(name): str(key) for name, key in record["keys"].items()},
                label=str(record["label"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise NotAnAgreement(folder=folder) from error
        if record["items"] != names_digest(catalog):
            raise NotAgreedCatalog(path=folder / _ITEMS)
        return found


def found_federation(
    folder: Path,
    *,
    recipe: str,
    facts: PublicFacts,
    catalog: Vocabulary,
    missing: int,
    parties: tuple[str, ...],
    addresses: Mapping[str, str],
    label: str,
) -> Agreement:
    """Make keys, certificates and a folder for every member, for a trial; return the agreement."""
    for address in addresses.values():
        read_address(address)
    names = (COORDINATOR, KEEPER, *parties)
    keys = {name: new_key() for name in names}
    agreement = Agreement(
        recipe=recipe,
        facts=facts,
        catalog=catalog,
        missing=missing,
        parties=parties,
        addresses=addresses,
        keys={name: key_text(key.public_key()) for name, key in keys.items()},
        label=label,
    )
    authority = Authority.new(label)
    # All folders appear in one step: half a federation would have keys that the other half doesn't know.
    with filled_folder(folder, replaces=_is_empty) as new:
        authority.write(new / AUTHORITY)
        for name in names:
            host = read_address(addresses[name])[0] if name in addresses else "localhost"
            authority.write_member(new / name, name, keys[name], host)
            agreement.write(new / name)
    return agreement


def _is_empty(folder: Path) -> bool:
    return not any(folder.iterdir())


def read_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT."""
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise BadAddress(address=text)
    return host.strip("[]"), int(port)
