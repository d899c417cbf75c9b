"""Model files: changed bytes, and whole files with a fitting digest around hostile parts."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np

import discreet
from discreet.core.checks import DiscreetError
from discreet.models import storage
from discreet.models.storage import pack_arrays
from fuzz.mutations import array_of, bytes_of, json_of

OLD = Path(__file__).parents[1] / "formats" / "v0.1"


def forge(path, label, arrays):
    """Write a model file of any contents, with the digest that belongs to them."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    raw = buffer.getvalue()
    label = {name: part for name, part in label.items() if name != "digest"}
    label["digest"] = storage._digest(json.loads(json.dumps(label)), raw)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("label.json", json.dumps(label))
        archive.writestr("arrays.npz", raw)


def contents(path):
    """Return the label and the arrays of an honest file, text ids in their new form."""
    label, raw = storage._open(path)
    with np.load(io.BytesIO(raw)) as stored:
        arrays = {name: stored[name] for name in stored.files}
    catalog = discreet.load(path).catalog
    with np.load(io.BytesIO(pack_arrays({}, {"catalog": catalog}))) as stored:
        arrays = {name: array for name, array in arrays.items() if name != "catalog"} | dict(stored)
    return label, arrays


def with_factors(label, arrays):
    """Return the parts of a model that learned little, as if it had learned three factors."""
    chance = np.random.default_rng(0)
    items, three = (12, 3), (3,)
    shapes = {
        "clicks": {"item_factors": items},
        "ratings": {"item_factors": items, "ridge": (4,)},
        "local-ratings": {"item_factors": items, "ridge": (4,), "user_vectors": (40, 4)},
        "profiles": {
            **dict.fromkeys(("item_factors", "profile_vectors"), items),
            **dict.fromkeys(("origin", "growth", "center", "scale"), three),
        },
        "projected-gradient": {"bases": items, "kept": three},
    }[label["scorer"]["kind"]]
    more = {name: chance.random(shape) for name, shape in shapes.items()}
    if "bases" in more:
        more["ranks"] = np.array([1, 2])
    return label, arrays | more


GROWN = ("clicks", "ratings", "local-ratings", "profiles", "projected-gradient")


def use(path):
    """Load a file and ask everything of the model that a caller may ask."""
    model = discreet.load(path)
    model.guarantee.label()
    chosen = model.catalog.ids[:3].tolist()
    asked = [
        lambda: model.recommend(dict.fromkeys(chosen, model.facts.low), k=3),
        lambda: model.fold_in(dict.fromkeys(chosen, model.facts.high)),
        lambda: model.similar_items(chosen[0]),
        lambda: model.save(path.with_suffix(".again"), force=True),
    ]
    for question in asked:
        # A model may decline a question; it may not break.
        try:
            question()
        except DiscreetError:
            continue


class ModelFiles:
    """Change some bytes of an honest file."""

    def __init__(self, folder):
        self.path = folder / "hostile.discreet"
        self.files = [path.read_bytes() for path in sorted(OLD.glob("*.discreet"))]

    def honest(self):
        for raw in self.files:
            self.path.write_bytes(raw)
            use(self.path)

    def attack(self, chance):
        self.path.write_bytes(bytes_of(chance.choice(self.files), chance))
        use(self.path)


class ModelArrays:
    """Change arrays and labels of files whose digests fit: whoever forges a file can compute a digest."""

    def __init__(self, folder):
        self.path = folder / "hostile.discreet"
        self.parts = [contents(path) for path in sorted(OLD.glob("*.discreet"))]
        self.parts += [with_factors(*contents(OLD / f"{kind}.discreet")) for kind in GROWN]

    def honest(self):
        for label, arrays in self.parts:
            forge(self.path, label, arrays)
            use(self.path)

    def attack(self, chance):
        label, arrays = chance.choice(self.parts)
        arrays = dict(arrays)
        if chance.random() < 0.3:
            label = json_of(label, chance)
            label = label if isinstance(label, dict) else {"format": label}
        for _ in range(chance.choice((0, 1, 1, 2))):
            name = chance.choice(list(arrays))
            arrays[name] = array_of(arrays[name], chance)
        if chance.random() < 0.05:
            arrays.pop(chance.choice(list(arrays)))
        forge(self.path, label, arrays)
        use(self.path)
