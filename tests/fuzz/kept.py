"""What is kept beside models and ratings: signatures, the state of devices, and folders of shards."""

import hashlib
import json
import shutil

import numpy as np

import discreet
from discreet.collect.campaign import Campaign
from discreet.collect.device import Device
from discreet.models.signatures import new_key, sign_file, signature_path, signer
from discreet.sources.sharding import make_shards
from discreet.sources.shards import open_shards
from discreet.statistics.counts import ItemVotes
from fuzz.models import OLD
from fuzz.mutations import array_of, bytes_of, json_of


class Signatures:
    """Signature files beside a model, with changed bytes and changed records."""

    def __init__(self, folder):
        self.model = folder / "ratings.discreet"
        shutil.copyfile(OLD / "ratings.discreet", self.model)
        new_key(folder / "key")
        self.key = sign_file(self.model, folder / "key")
        self.path = signature_path(self.model)
        self.raw = self.path.read_bytes()

    def honest(self):
        assert signer(self.model) == self.key

    def attack(self, chance):
        deep = b"[" * 4000 if chance.random() < 0.02 else None
        changed = json.dumps(json_of(json.loads(self.raw), chance)).encode()
        self.path.write_bytes(deep or (bytes_of(self.raw, chance) if chance.random() < 0.5 else changed))
        found = signer(self.model)
        # Blanks and the case of letters are not signed; everything that was is as it was.
        assert found == self.key


class Devices:
    """States of a device that changed while it was off: refused, or it goes on answering."""

    def __init__(self, folder):
        self.campaign = Campaign.from_bytes((OLD / "films.campaign").read_bytes())
        self.state = json.loads((OLD / "films.device.json").read_bytes())
        self.items = self.campaign.catalog.ids.tolist()

    def honest(self):
        self._use(self.state)

    def attack(self, chance):
        text = json.dumps(self.state).encode()
        if chance.random() < 0.3:
            try:
                state = json.loads(bytes_of(text, chance))
            except (ValueError, RecursionError):
                return
        else:
            state = json_of(self.state, chance)
        self._use(state)

    def _use(self, state):
        device = Device.restore(self.campaign, state)
        for form in ("binary", "json"):
            device.message({self.items[0]: 5.0, self.items[-1]: 1.0}, form=form)
        Device.restore(self.campaign, device.state())


class Shards:
    """Folders of shards whose files, and the digests that belong to them, were changed."""

    def __init__(self, folder):
        chance = np.random.default_rng(0)
        lines = {(f"u{user}", item) for user, item in chance.integers(0, 30, (300, 2)).tolist()}
        rows = [f"{user},{item},{1 + item % 5}" for user, item in sorted(lines)]
        (folder / "table.csv").write_text("\n".join(["user,item,rating", *rows, ""]))
        self.whole, self.folder = folder / "whole", folder / "hostile"
        make_shards([folder / "table.csv"], self.whole, n_shards=2)
        self.files = sorted(path.relative_to(self.whole) for path in self.whole.rglob("*") if path.is_file())

    def honest(self):
        shutil.copytree(self.whole, self.folder, dirs_exist_ok=True)
        self._use()

    def attack(self, chance):
        shutil.copytree(self.whole, self.folder, dirs_exist_ok=True)
        place = self.folder / chance.choice(self.files)
        raw = place.read_bytes()
        if place.suffix == ".json" and chance.random() < 0.8:
            place.write_bytes(json.dumps(json_of(json.loads(raw), chance)).encode())
        elif place.suffix == ".npy" and chance.random() < 0.7:
            np.save(place, array_of(np.load(place), chance), allow_pickle=False)
        else:
            place.write_bytes(bytes_of(raw, chance))
        if chance.random() < 0.9:
            self._forge(place)
        self._use()

    def _forge(self, place):
        """Let the manifest say what the file is now: whoever may write one may write both."""
        if place.name == "manifest.json":
            return
        manifest = self.folder / "manifest.json"
        record, digest = json.loads(manifest.read_bytes()), hashlib.sha256(place.read_bytes()).hexdigest()
        if place.name == "catalog.parquet":
            record["catalog_digest"] = digest
        else:
            record["shards"][int(place.parent.name)]["digests"][place.name] = digest
        manifest.write_bytes(json.dumps(record).encode())

    def _use(self):
        source = open_shards(self.folder)
        source.total(ItemVotes(n_items=source.n_items, norm="l2"))
        discreet.Biases(epsilon=1.0).fit(source)
