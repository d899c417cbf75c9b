"""Follow a year as members of a federation: its recipe, a party's and the coordinator's folder, a simulation.

Folders, keys and the agreement are those of any federation (`discreet.federated.identity`). The recipe names
`follow` in place of a model, with the settings of the year. A party's state is `party.follow` in its folder;
the coordinator keeps sums and the items that were declared later.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core import PrivacyRandom, write_whole
from discreet.data import Interactions, Vocabulary
from discreet.federated.identity.agreement import COORDINATOR, KEEPER, Agreement
from discreet.federated.keeper import Keeper, Line
from discreet.federated.noise import SharedNoise
from discreet.federated.serving.party import Joining, member_of
from discreet.federated.serving.tls import TlsLine
from discreet.federated.simulation import split_users
from discreet.federated.transport import Endpoint, InProcess, Transport
from discreet.follow import errors
from discreet.follow.agreement import FollowAgreement
from discreet.follow.coordinator import FollowCoordinator, FollowedTogether
from discreet.follow.party import FollowParty, Supply
from discreet.follow.settings import FollowSettings
from discreet.follow.year import vocabulary_of
from discreet.privacy import Ledger

#: A party's state in its folder.
STATE = "party.follow"
_SUMS, _DECLARED = "coordinator.state", "declared.json"
_MODEL = "follow"
_DAY = 86_400.0


def to_recipe(settings: FollowSettings) -> str:
    """Return a year's settings as the recipe of an agreement, in TOML."""
    record = settings.to_json()
    pace = record.pop("pace")
    lines = [f'model = "{_MODEL}"', "", "[settings]"]
    lines += [f"{name} = {value!r}" for name, value in record.items() if value is not None]
    lines += ["", "[settings.pace]", *(f"{name} = {value!r}" for name, value in pace.items())]
    return "\n".join(lines) + "\n"


def from_recipe(text: str) -> FollowSettings | None:
    """Read what `to_recipe` wrote; None if the recipe is that of a model."""
    try:
        recipe = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    if recipe.get("model") != _MODEL:
        return None
    if set(recipe) != {"model", "settings"} or not isinstance(recipe["settings"], dict):
        raise errors.BadPeriodRecipe(model=_MODEL)
    return FollowSettings.from_json(recipe["settings"])


def year_of(agreement: Agreement) -> FollowAgreement | None:
    """Return what the members of a run agreed on, if it follows a year; None if it fits a model."""
    settings = from_recipe(agreement.recipe)
    if settings is None:
        return None
    return FollowAgreement(run=agreement.run, settings=settings, facts=agreement.facts, noise=agreement.noise)


def _year(agreement: Agreement) -> FollowAgreement:
    found = year_of(agreement)
    if found is None:
        raise errors.NotAPeriod(run=agreement.run)
    return found


def following(
    agreement: Agreement, supply: Supply, *, ledger: Ledger | None = None, dataset: str | None = None
) -> Joining:
    """Return what answers as a party: it spends for the year and begins it, or goes on where it was."""
    year = _year(agreement)

    @contextlib.contextmanager
    def join(name: str, folder: Path, keeper: Line) -> Iterator[Endpoint]:
        path = folder / STATE
        if path.exists():
            yield FollowParty(name, path, year, supply, ledger=ledger, keeper=keeper).answer
        else:
            yield FollowParty.start(
                name, path, agreement.catalog, year, supply, dataset=dataset, ledger=ledger, keeper=keeper
            ).answer

    return join


def coordinated(
    folder: Path, agreement: Agreement, transport: Transport, *, seconds: float = 300.0
) -> FollowCoordinator:
    """Return the coordinator whose folder this is, with all that was declared and released so far."""
    return FollowCoordinator(
        _year(agreement),
        transport,
        parties=agreement.parties,
        catalog=_catalog(folder, agreement),
        state=folder / _SUMS,
        keeper=TlsLine(agreement.address(KEEPER), folder, agreement.keys[KEEPER]),
        seconds=seconds,
    )


def declare_items(folder: Path, agreement: Agreement, items: Vocabulary) -> int:
    """Declare new items as the member whose folder this is; return how many are new to it."""
    year, name = _year(agreement), member_of(folder, agreement)
    if name == COORDINATOR:
        before = _catalog(folder, agreement)
        coordinator = coordinated(folder, agreement, InProcess({}))
        coordinator.declare(items)
        after = coordinator.catalog
        later = after.ids[len(agreement.catalog) :].tolist()
        write_whole(folder / _DECLARED, json.dumps(later).encode())
        return len(after) - len(before)
    if name == KEEPER:
        raise errors.KeeperHasNoItems()
    if not (folder / STATE).exists():
        raise errors.NoState(path=folder)
    line = TlsLine(agreement.address(KEEPER), folder, agreement.keys[KEEPER])
    return FollowParty(name, folder / STATE, year, lambda release: None, keeper=line).declare(items)


def _catalog(folder: Path, agreement: Agreement) -> Vocabulary:
    """Return the items that were agreed on and those that the coordinator declared later."""
    later: list[Any] = []
    path = folder / _DECLARED
    if path.exists():
        try:
            later = list(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise errors.NotDeclaredItems(path=path) from error
    return vocabulary_of([*agreement.catalog.ids.tolist(), *later])


def releases_together(
    agreed: FollowAgreement, data: Interactions, *, begins: float, random: PrivacyRandom | None = None
) -> Iterator[FollowedTogether]:
    """Replay a year of timed ratings with users assigned to parties in turn, all in one process.

    The year begins at `begins`, in seconds since 1970, which is public like its length: a rating's own time
    states at which release it enters. Earlier ones enter first, later ones do not enter.
    """
    if data.times is None:
        raise errors.TimesForReplay()
    settings, noise = agreed.settings, agreed.noise
    assert isinstance(noise, SharedNoise)
    own = split_users(data, noise.parties)
    source = random or PrivacyRandom.from_os()
    keeper = Keeper(roster=list(own), least=noise.least_parties)
    seconds = settings.days * _DAY / settings.releases

    def supply_of(people: Interactions) -> Supply:
        assert people.times is not None
        release = np.maximum((people.times - begins) // seconds, 0)

        def supply(number: int) -> Interactions:
            now = people.where(release == number)
            return now.select_users(np.diff(now.indptr) > 0)

        return supply

    with tempfile.TemporaryDirectory() as folder:
        members = {
            name: FollowParty.start(
                name,
                Path(folder) / f"{name}.follow",
                data.catalog,
                agreed,
                supply_of(people),
                keeper=keeper,
                random=source.spawn(name) if source.simulated else source,
            )
            for name, people in own.items()
        }
        endpoints = {name: member.answer for name, member in members.items()}
        coordinator = FollowCoordinator(
            agreed,
            InProcess(endpoints),
            parties=list(own),
            catalog=data.catalog,
            keeper=keeper,
            simulated=source.simulated,
        )
        for _ in range(settings.releases):
            yield coordinator.release()
