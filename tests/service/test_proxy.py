"""The service behind nginx with TLS, set up as docs/collecting.md says."""

import http.client
import re
import shutil
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from discreet.collect.device import Device
from discreet.service.admission import seal
from ports import free_port
from service.servers import ask

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
DOCS = Path(__file__).parents[2] / "docs" / "collecting.md"
pytestmark = [
    pytest.mark.systems,
    pytest.mark.skipif(
        NGINX is None or shutil.which("openssl") is None,
        reason="nginx is not installed; `make browser` brings it",
    ),
]


@pytest.fixture
def proxy(tmp_path):
    """Return a function that starts nginx with TLS in front of a port."""
    running = []

    def start(behind):
        location = re.search(r"```nginx\n(.*?)```", DOCS.read_text(), re.DOTALL).group(1)
        port = free_port()
        made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=x"]
        made += ["-keyout", tmp_path / "key", "-out", tmp_path / "cert"]
        subprocess.run(made, check=True, capture_output=True)
        temporary = "".join(
            f"{kind}_temp_path {tmp_path}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (tmp_path / "nginx.conf").write_text(
            f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error; events {{}} "
            f"http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port} ssl; "
            f"ssl_certificate {tmp_path}/cert; "
            f"ssl_certificate_key {tmp_path}/key; {location.replace('8080', str(behind))} }} }}"
        )
        running.append(subprocess.Popen([NGINX, "-c", tmp_path / "nginx.conf", "-p", tmp_path]))
        return f"https://127.0.0.1:{port}"

    yield start
    for process in running:
        process.terminate()
        process.wait()


def test_reports_come_through_and_spoofed_addresses_do_not_count(collecting, films, proxy):
    service, store = collecting(films, per_minute=5, proxies=["127.0.0.1"])
    url = proxy(service.port)
    trusting = ssl._create_unverified_context()  # a certificate made for this test
    for _ in range(6_000):
        try:
            assert ask(f"{url}/health", context=trusting)[0] == 200
            break
        except OSError:
            time.sleep(0.05)
    body = seal(Device(films).message({"film 3": 5.0}))
    statuses = []
    for number in range(8):
        # Another address than the proxy's own, which would be looked past.
        line = http.client.HTTPSConnection(
            "127.0.0.1", int(url.rpartition(":")[2]), context=trusting, source_address=("127.0.0.2", 0)
        )
        headers = {"content-type": "application/octet-stream", "x-forwarded-for": f"192.0.2.{number}"}
        line.request("POST", "/reports", body, {**headers, "origin": url})
        statuses.append(line.getresponse().status)
        line.close()
    assert statuses == [200] * 5 + [429] * 3
    assert store.counts() == (1, 1)
