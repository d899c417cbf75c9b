"""A folder without a member's certificate, key or authority is refused before anybody is called."""

import shutil

import pytest

from discreet.federated.identity.keys import AUTHORITY, CERTIFICATE, KEY, Authority, new_key
from discreet.federated.serving.tls import tls_context
from discreet.testing import refuses


@pytest.fixture(scope="module")
def member(tmp_path_factory):
    folder = tmp_path_factory.mktemp("member")
    Authority.new("shops").write_member(folder, "p1", new_key(), "localhost")
    return folder


@pytest.mark.parametrize("server", [True, False])
def test_a_whole_folder_is_taken(member, server):
    assert tls_context(member, server=server).cert_store_stats()["x509_ca"] == 1


@pytest.mark.parametrize("server", [True, False])
@pytest.mark.parametrize("missing", [AUTHORITY, CERTIFICATE, KEY])
def test_a_folder_that_lacks_a_file_gets_a_sentence(member, missing, server, tmp_path):
    folder = tmp_path / "p1"
    shutil.copytree(member, folder)
    (folder / missing).unlink()
    with refuses("no-member-folder"):
        tls_context(folder, server=server)
