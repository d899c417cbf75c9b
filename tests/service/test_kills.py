"""A service that is killed at work has kept every report it acknowledged, and none twice."""

from collections import Counter

import pytest

from discreet.service.stores import open_store
from service.senders import killed_while_sending, letters_of
from service.servers import Server


def check_nothing_lost(url, campaign, path, people, kills):
    path.write_bytes(campaign.to_bytes())
    letters = letters_of(campaign, people=people, reports=20, batch=5)
    with Server(path, url) as server:
        outcome = killed_while_sending(server, letters, kills)
    store = open_store(url)
    rows = list(store.reports())
    store.close()
    acknowledged = outcome.acknowledged()
    assert outcome.failures > 0 and set(outcome.statuses) == {200}
    assert len(acknowledged) == 20 * people
    assert {(row.sender, row.item): row.code for row in rows} == acknowledged
    assert max(Counter((row.sender, row.item) for row in rows).values()) == 1


@pytest.mark.thorough
def test_a_killed_service_has_kept_what_it_acknowledged(store_url, films, tmp_path):
    check_nothing_lost(store_url, films, tmp_path / "films.campaign", people=60, kills=1)


@pytest.mark.slow
def test_a_thousand_devices_and_five_kills(store_url, films, tmp_path):
    check_nothing_lost(store_url, films, tmp_path / "films.campaign", people=1000, kills=5)
