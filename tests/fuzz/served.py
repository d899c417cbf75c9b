"""What strangers send to doors: HTTP bodies, messages to the keeper, and the pages of Parquet files."""

import asyncio
import dataclasses
import io
import json
import random

import polars as pl
from starlette.requests import Request

from discreet.collect.blind_signatures import BlindPublicKey
from discreet.collect.campaign import Campaign
from discreet.collect.invitations import TokenRequest, check_token, read_request
from discreet.core.checks import DataError
from discreet.data.reading.readers import read
from discreet.federated.keeper import Keeper
from discreet.federated.wire import Message, decode, encode
from discreet.service.admission import seal, submission, unseal
from discreet.service.collect_app import kind_of
from discreet.service.limits import Peers, RefusedError, body_of
from discreet.service.questions import parsed, question
from fuzz.models import OLD
from fuzz.mutations import bytes_of, json_of

_KINDS = [
    b"application/octet-stream",
    b"application/json",
    b"text/plain",
    b"",
    b"\xff",
    b"application/json;a=b",
]
_CHAINS = [b"192.0.2.1", b"::1, 10.0.0.1", b"", b",,,", b"\xff", b"fe80::1%eth0", b"1" * 500, b"127.0.0.1"]


class HttpBodies:
    """Requests with changed bodies, types, lengths and addresses: refused by a status, or taken."""

    def __init__(self, folder):
        self.campaign = Campaign.from_bytes((OLD / "films.campaign").read_bytes())
        self.report = (OLD / "films.report").read_bytes()
        self.question = {"history": [["a", 4.0], ["b", 1.0]], "k": 3, "user": 7}
        self.peers = Peers(["127.0.0.1"])

    def honest(self):
        submission(self.campaign, unseal(seal(self.report)))
        _read(json.dumps(self.question).encode())
        _read(json.dumps({"people": [self.question]}).encode())

    def attack(self, chance):
        sealed = seal(self.report)
        body = bytes_of(sealed, chance) if chance.random() < 0.5 else seal(bytes_of(self.report, chance))
        headers = [(b"content-type", chance.choice(_KINDS)), (b"x-forwarded-for", chance.choice(_CHAINS))]
        headers += [(b"content-length", chance.choice([b"", b"-1", b"9" * 30, b"\xb2", b"10"]))]
        if chance.random() < 0.5:
            headers, body = [(b"content-type", _KINDS[0]), (b"x-forwarded-for", _CHAINS[0])], sealed
        request = _request(headers, body, chance)
        try:
            self.peers.of(request)
            kind = kind_of(request)
            raw = asyncio.run(body_of(request, 1 << 16))
            submission(self.campaign, unseal(raw) if kind == "application/octet-stream" else raw)
            asked = {"people": [self.question]} if chance.random() < 0.3 else self.question
            _read(json.dumps(json_of(asked, chance)).encode())
        except RefusedError as error:
            raise DataError(error.sentence) from error


class Invitations:
    """Requests for tokens, answers to them and tokens themselves, with changed bytes and shapes."""

    def __init__(self, folder):
        campaign = Campaign.from_bytes((OLD / "films.campaign").read_bytes())
        # Nobody knows the factors of this number, and nobody needs to.
        key = BlindPublicKey((1 << 2047) + 29)
        self.campaign = dataclasses.replace(campaign, version=2, invitations=key)
        self.request = TokenRequest.new(self.campaign, bytes(16), "a" * 24)
        self.answer = {"signature": "5" * 512}

    def honest(self):
        read_request(self.request.body(), self.campaign.invitations)
        assert TokenRequest.from_json(self.request.to_json()) == self.request

    def attack(self, chance):
        key, body, door = self.campaign.invitations, self.request.body(), chance.randrange(4)
        if door == 0:
            read_request(bytes_of(body, chance), key)
        elif door == 1:
            read_request(json.dumps(json_of(json.loads(body), chance)).encode(), key)
        elif door == 2:
            check_token(self.campaign, bytes(16), chance.choice(["", "A" * 384, "é", "=" * 9, "A" * 100_000]))
        else:
            kept = TokenRequest.from_json(json_of(self.request.to_json(), chance))
            kept.token(self.campaign, json.dumps(json_of(self.answer, chance)).encode())


def _read(raw):
    asked = parsed(raw, {})
    for one in asked if isinstance(asked, list) else [asked]:
        question(one, {})


def _request(headers, body, chance: random.Random):
    parts = [body[start : start + 400] for start in range(0, len(body), 400)] or [b""]

    async def receive():
        part = parts.pop(0) if parts else b""
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    client = (chance.choice(["127.0.0.1", "192.0.2.9", "::1", "", "nonsense"]), 1)
    return Request({"type": "http", "method": "POST", "client": client, "headers": headers}, receive)


class KeeperMessages:
    """Keys and requests for sums with changed headers and bytes: small, of the run, or refused."""

    def __init__(self, folder):
        self.keeper = Keeper(roster=["a", "b", "c"], least=2, run="agreed")

    def honest(self):
        assert decode(self.keeper(encode(self._message("key", "a")))).fields["kept"]

    def attack(self, chance):
        raw = encode(self._message(chance.choice(["key", "reveal"]), chance.choice("abc")))
        if chance.random() < 0.5:
            raw = bytes_of(raw, chance)
        else:
            length = int.from_bytes(raw[5:9], "little")
            text = json.dumps(json_of(json.loads(raw[17 : 17 + length]), chance)).encode()
            raw = raw[:5] + len(text).to_bytes(4, "little") + raw[9:17] + text
        answer = decode(self.keeper(raw))
        if answer.kind == "refused":
            raise DataError("The keeper refused.")

    def _message(self, kind, name):
        fields = {"key": "00" * 32, "question": "q", "least": 2}
        if kind == "reveal":
            fields = {"names": '["a","b"]', "size": 3, "question": "q"}
        return Message(kind=kind, run="agreed", step=0, sender=name, fields=fields)


class ParquetPages:
    """Parquet files of texts, categories and lists, packed in several ways, with changed bytes."""

    def __init__(self, folder):
        chance, self.path, self.files = random.Random(0), folder / "a.parquet", []
        rows = [(chance.randrange(9), f"i{place}", chance.randrange(1, 6)) for place in range(60)]
        table = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
        for packed in ("zstd", "snappy", "uncompressed"):
            for frame in (table, table.with_columns(pl.col("item").cast(pl.Categorical))):
                file = io.BytesIO()
                frame.write_parquet(file, compression=packed)
                self.files.append(file.getvalue())

    def honest(self):
        for raw in self.files:
            self.path.write_bytes(raw)
            read(self.path)

    def attack(self, chance):
        self.path.write_bytes(bytes_of(chance.choice(self.files), chance))
        read(self.path)
