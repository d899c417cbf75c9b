"""Campaigns, reports of both forms, federated messages, ledgers, journals, and tables of ratings."""

import gzip
import io
import json
import random
import shutil
import zlib
from dataclasses import replace

import numpy as np
import polars as pl

from discreet.collect.campaign import Campaign
from discreet.collect.collector import CatalogCollector, Collector
from discreet.collect.hidden_items import CatalogCampaign
from discreet.collect.opening import campaign_from_bytes
from discreet.core.checks import DataError
from discreet.data.reading.readers import read
from discreet.data.vocabulary import Vocabulary
from discreet.federated.asking import addressed
from discreet.federated.journal import Journal
from discreet.federated.keeper import Keeper
from discreet.federated.protocols.averaged_items import AveragedItems
from discreet.federated.protocols.protocol import check_arrays
from discreet.federated.protocols.summed import SummedStatistics
from discreet.federated.wire import Message, decode, encode
from discreet.privacy.ledger.ledger import Ledger
from discreet.privacy.mechanisms.cells import HiddenStars
from federation import coordinator, members, toy_parts
from fuzz.models import OLD
from fuzz.mutations import array_of, bytes_of, json_of


class Campaigns:
    """Packed campaigns, with changed bytes and with changed records."""

    def __init__(self, folder):
        self.raw = (OLD / "films.campaign").read_bytes()
        self.record = json.loads(zlib.decompress(self.raw[4:]))
        text = json.dumps(self.record | {"items": []}).replace("[]", "[" + "0," * 20_000_000 + "0]")
        self.bomb = b"DSCC" + zlib.compress(text.encode())

    def honest(self):
        campaign_from_bytes(self.raw)

    def attack(self, chance):
        if chance.random() < 0.3:
            campaign_from_bytes(bytes_of(self.raw, chance))
        if chance.random() < 0.02:
            campaign_from_bytes(self.bomb)
        changed = json_of(self.record, chance)
        campaign_from_bytes(b"DSCC" + zlib.compress(json.dumps(changed).encode()))


class Reports:
    """Messages to both collectors: refused ones are counted, and nothing is raised at all."""

    def __init__(self, folder):
        self.campaign = Campaign.from_bytes((OLD / "films.campaign").read_bytes())
        self.hidden = CatalogCampaign(
            name="films", mechanism=HiddenStars(epsilon=3.0), catalog=Vocabulary.of(range(50))
        )
        self.binary = (OLD / "films.report").read_bytes()
        self.json = json.loads((OLD / "films.report.json").read_bytes())
        self.cells = (OLD / "hidden.report").read_bytes()
        self.ratings, self.catalog = Collector(self.campaign), CatalogCollector(self.hidden)

    def honest(self):
        assert self.ratings.receive(self.binary) and self.catalog.receive(self.cells)

    def attack(self, chance):
        if sum(self.ratings.refusals.values()) > 10_000:
            self.ratings, self.catalog = Collector(self.campaign), CatalogCollector(self.hidden)
        kept = [
            self.ratings.receive(bytes_of(self.binary, chance)),
            self.ratings.receive(json.dumps(json_of(self.json, chance)).encode()),
            self.catalog.receive(bytes_of(self.cells, chance)),
        ]
        if not any(kept):
            raise DataError("Collectors count what they refuse, and raise nothing.")


class Messages:
    """Questions to a party, answers to a coordinator and keys to a keeper."""

    def __init__(self, folder):
        data, parts = toy_parts(n_items=20)
        self.data, self.asked, self.told = data, [], []
        for protocol in (SummedStatistics(epsilon=30.0), AveragedItems(epsilon=30.0, factors=3, rounds=1)):
            party = members({"p0": parts["p0"]}, protocol)["p0"]

            def answer(raw, party=party, protocol=protocol):
                self.asked.append((protocol, decode(raw)))
                self.told.append((protocol, decode(raw), decode(party.answer(raw))))
                return encode(self.told[-1][2])

            coordinator(protocol, {"p0": answer}, data.catalog).train(data.facts)
        self.parts = parts
        self.keeper = Keeper(roster=["a", "b", "c"], least=2)

    def honest(self):
        self._ask(*self.asked[0])

    def attack(self, chance):
        kind = chance.randrange(4)
        if kind == 0:
            self._ask(*self._changed(chance.choice(self.asked), chance))
        elif kind == 1:
            protocol, question, answer = chance.choice(self.told)
            _, changed = self._changed((protocol, answer), chance)
            answer = addressed(question, "p0", changed)
            check_arrays(answer, protocol.shapes(question, self.data.n_items), protocol.number_type)
            protocol.check_answer(question, answer)
        elif kind == 2:
            fields = {"key": "00" * 32, "question": "q", "least": 2, "names": '["a","b"]', "size": 3}
            message = Message(
                kind=chance.choice(["key", "reveal"]), run="r", step=0, sender="a", fields=fields
            )
            decode(self.keeper(self._bytes(message, chance)))
        else:
            decode(bytes_of(encode(chance.choice(self.told)[2]), chance))

    def _ask(self, protocol, question):
        raw = question if isinstance(question, bytes) else encode(question)
        party = members({"p0": self.parts["p0"]}, protocol)["p0"]
        decode(party.answer(raw))

    def _changed(self, pair, chance):
        protocol, message = pair
        arrays = dict(message.arrays)
        if arrays and chance.random() < 0.7:
            name = chance.choice(list(arrays))
            arrays[name] = np.ascontiguousarray(array_of(np.array(arrays[name]), chance))
        changed = Message(
            kind=message.kind,
            run=message.run,
            step=message.step,
            sender=message.sender,
            fields=message.fields,
            arrays={
                name: array for name, array in arrays.items() if array.dtype.str in ("<f8", "<i8", "<u8")
            },
        )
        return protocol, self._bytes(changed, chance) if chance.random() < 0.6 else encode(changed)

    def _bytes(self, message, chance):
        """Return the message with a changed header."""
        raw = encode(message)
        length = int.from_bytes(raw[5:9], "little")
        text = json.dumps(json_of(json.loads(raw[17 : 17 + length]), chance)).encode()
        return raw[:5] + len(text).to_bytes(4, "little") + raw[9:17] + text + raw[17 + length :]


class Ledgers:
    """Ledger files with changed bytes, used in every way."""

    def __init__(self, folder):
        self.path = folder / "hostile.ledger"
        self.raw = (OLD / "spent.ledger").read_bytes()

    def honest(self):
        self.path.write_bytes(self.raw)
        self._use()

    def attack(self, chance):
        raw = bytearray(self.raw)
        for _ in range(chance.choice((1, 2, 8))):
            place = chance.randrange(len(raw))
            length = chance.choice((1, 1, 4, 60))
            raw[place : place + length] = chance.randbytes(length)[: len(raw) - place]
        self.path.write_bytes(bytes_of(bytes(raw), chance) if chance.random() < 0.1 else raw)
        self._use()

    def _use(self):
        for name in ("hostile.ledger-journal", "hostile.ledger.lock"):
            self.path.with_name(name).unlink(missing_ok=True)
        ledger = Ledger.open(self.path)
        ledger.entries()
        for dataset in ledger.datasets():
            ledger.spent_by_definition(dataset), ledger.remaining(dataset), ledger.budgets(dataset)
        promise = ledger.budget("toy")
        if promise is not None:
            ledger.spend("toy", replace(promise.guarantee, epsilon=0.25, delta=0.0), what="more")


class Journals:
    """Journals with changed bytes: refused, or read without losing a whole record before the last."""

    def __init__(self, folder):
        self.path = folder / "hostile.journal"
        self.raw = (OLD / "party.journal").read_bytes()
        shutil.copyfile(OLD / "party.journal", self.path)
        journal = Journal(self.path)
        self.count = len(journal.messages)
        journal.close()

    def honest(self):
        self.path.write_bytes(self.raw)
        Journal(self.path).close()

    def attack(self, chance):
        self.path.write_bytes(bytes_of(self.raw, chance))
        journal = Journal(self.path)
        journal.close()


class Tables:
    """Tables of ratings as text, packed text and Parquet."""

    def __init__(self, folder):
        chance = random.Random(0)
        rows = [(f"u{chance.randrange(9)}", index, chance.randrange(1, 6)) for index in range(60)]
        lines = ["user,item,rating", *(",".join(map(str, row)) for row in rows), ""]
        self.text = "\n".join(lines).encode()
        table = io.BytesIO()
        pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row").write_parquet(table)
        self.parquet, self.folder = table.getvalue(), folder
        self.bomb = gzip.compress(self.text + b"u1,77,5\n" * 20_000_000, 9)

    def honest(self):
        for name, raw in (
            ("a.csv", self.text),
            ("a.csv.gz", gzip.compress(self.text)),
            ("a.parquet", self.parquet),
        ):
            self._read(name, raw)

    def attack(self, chance):
        kind = chance.randrange(100)
        if kind == 0:
            self._read("a.csv.gz", self.bomb)
        elif kind < 50:
            self._read("a.csv", bytes_of(self.text, chance))
        elif kind < 65:
            packed = gzip.compress(bytes_of(self.text, chance))
            self._read("a.csv.gz", packed if kind < 58 else bytes_of(packed, chance))
        else:
            self._read("a.parquet", bytes_of(self.parquet, chance))

    def _read(self, name, raw):
        path = self.folder / name
        path.write_bytes(raw)
        read(path)


class Layouts:
    """JSON lines and the layouts that are read by name."""

    def __init__(self, folder):
        self.folder = folder
        self.texts = {
            "netflix": b"1:\n7,3,2005-09-06\n8,5,2004-01-01\n2:\n7,1,2005-01-01\n" * 3,
            "lightgcn": b"7 1 2 4\n8 1\n9 3 2 1\n10\n",
            "sasrec": b"7 2\n8 1\n7 1\n9 3\n",
            "recbole": b"user_id:token\titem_id:token\trating:float\n7\t2\t3\n8\t1\t4.5\n",
            "movielens": b"7\t2\t3\t881250949\n8\t1\t4\t881250950\n",
            None: b'{"user": 7, "item": "a", "rating": 3, "time": "2005-03-01T12:00:00+02:00"}\n' * 4,
        }

    def honest(self):
        for layout, text in self.texts.items():
            self._read(layout, text, False)

    def attack(self, chance):
        layout = chance.choice(list(self.texts))
        skip = layout != "netflix" and chance.random() < 0.3
        self._read(layout, bytes_of(self.texts[layout], chance), skip)

    def _read(self, layout, raw, skip):
        path = self.folder / "a.txt"
        path.write_bytes(raw)
        read(path, layout=layout, duplicates="last", skip_bad_lines=skip)
