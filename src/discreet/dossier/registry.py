"""Write an entry for the public registry of differential privacy deployments.

The entry follows the registry's schema at tier 3, its most complete one. All of it comes from the label and
from `HumanFacts`. The schema has enumerations and dates that can't contain a mark: if such a fact is missing,
the entry omits the key or states in its notes what the value means instead.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.core import first_bytes
from discreet.core.checks import visible
from discreet.core.yaml_text import yaml_text
from discreet.dossier.errors import NoGuarantee
from discreet.dossier.facts import HumanFacts
from discreet.privacy import Basis, Guarantee, Neighbors, Trust, Unit
from discreet.report import listed_assumptions, number_above

#: The name of such a file in messages.
ENTRY = "registry entry"
_FIRST = b"url_slug: "
_UNITS = {Unit.USER: "User-level", Unit.RATING: "User-item-level", Unit.VALUE: "Rating-level"}
_UNIT_DETAILS = {
    Unit.USER: "One unit is the whole history of one user: all ratings and interactions, and their times.",
    Unit.RATING: "One unit is whether and how one user rated one item.",
    Unit.VALUE: "One unit is the value of one rating. Which items a user rated is public.",
}
_NEIGHBORS = {
    Neighbors.ADD_OR_REMOVE: "Adjacent datasets differ in the presence of one unit (added or removed).",
    Neighbors.REPLACE: "Adjacent datasets differ in the content of one unit (replaced).",
}
_MODELS = {Trust.LOCAL: "Local", Trust.CENTRAL: "Central", Trust.JOINT: "Central"}
_MODEL_DETAILS = {
    Trust.LOCAL: "Each device adds noise before anything leaves it.",
    Trust.CENTRAL: "The data owner runs the fit on the original data and publishes noisy results only.",
    Trust.JOINT: "The data owner runs the fit on the original data and publishes noisy results only. "
    "Recommendations for a user also use that user's own history (joint differential privacy).",
}
_ACTORS = {
    Trust.LOCAL: "Users trust their own device only. The collector, everyone who receives the model, and "
    "every outside attacker are untrusted and may collude.",
    Trust.CENTRAL: "Users trust the data owner with the original data. Everyone who sees the release is "
    "untrusted and may collude and know all other users' data.",
    Trust.JOINT: "Users trust the data owner with the original data. Everyone who sees the release, "
    "including all other users and their recommendations, is untrusted and may collude. A user's own "
    "recommendations are computed from that user's history and are for that user only.",
}
_DOMAIN = (
    "Interactions of users with the items of a catalog, with or without ratings and times. The guarantee "
    "covers every dataset of this form over the declared catalog and scale, not only the actual one."
)
_NOISE = (
    "Noise: exact integer noise on a public fixed-point grid, drawn from an AES-based stream that the "
    "operating system seeds. No floating-point artifact of the noise depends on the data. The cost of "
    "rounding is part of the sensitivity. Sampling time may depend on the noise and isn't released. The fit "
    "isn't interactive, so no outsider measures its time."
)
_JUSTIFICATION = (
    "All releases of a fit are calibrated together before any data is read, and the cost is written to a "
    "ledger first. Gaussian releases compose exactly (their precisions add), which needs less noise than "
    "bounds by Renyi divergence. Statistical tests compare the noise with its stated "
    "distribution and reject a wrong one."
)


def is_entry(path: Path) -> bool:
    """Return whether a file begins like an entry that this module writes."""
    return first_bytes(path, len(_FIRST)) == _FIRST


def registry_entry(
    label: Mapping[str, Any], facts: HumanFacts | None = None, *, published: str | None = None
) -> str:
    """Return an entry in YAML for the label of a model or of synthetic data.

    Parameters:
        label: The content of the label.
        facts: What only a human knows; missing facts are marked.
        published: The day of the release as YYYY-MM-DD, if a ledger states it.

    Raises:
        ParameterError: The model has no guarantee, so there is nothing to register.
    """
    return visible(yaml_text(registry_record(label, facts or HumanFacts(), published=published)))


def registry_record(
    label: Mapping[str, Any], facts: HumanFacts, *, published: str | None = None
) -> dict[str, Any]:
    """Return the entry as a value; `registry_entry` writes it as YAML."""
    guarantee = Guarantee.from_json(label["guarantee"])
    if not math.isfinite(guarantee.epsilon) or guarantee.simulated:
        raise NoGuarantee(what="a registry entry")
    slug = "".join(letter if letter.isalnum() else "-" for letter in str(label["name"]).lower())
    return {
        "url_slug": slug,
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(label, facts, published),
            "dp_variant": _variant(guarantee),
            "privacy_loss": _loss(guarantee),
            "deployment_model": _model(label, guarantee),
            "accounting": _accounting(guarantee),
            "implementation": _implementation(label, guarantee, facts),
            "administrative": {
                "sources": _evidence(guarantee),
                "notes": _notes(facts, published),
                "registry_authors": [facts.text("contact")],
            },
        },
    }


def _basic(label: Mapping[str, Any], facts: HumanFacts, published: str | None) -> dict[str, Any]:
    synthetic = "synthetic" in str(label.get("format", ""))
    kind = "Synthetic interactions drawn from" if synthetic else "A recommender,"
    return {
        "name": f"{'Synthetic data' if synthetic else 'Recommendations'} by {label['name']}",
        "data_curators": [facts.text("controller")],
        "description": f"{kind} a {label['name']} model, learned from users' interactions with discreet.",
        "intended_use": facts.text("purpose"),
        "data_product_type": "Synthetic data" if synthetic else "Machine learning model",
        "data_product_region": facts.text("region"),
        "publication_date": published or datetime.now(UTC).date().isoformat(),
        **({} if facts.sector is None else {"data_product_sector": facts.sector}),
    }


def _variant(guarantee: Guarantee) -> dict[str, str]:
    return {
        "variant_name": "Pure DP" if guarantee.delta == 0 else "Approximate DP",
        "data_domain": _DOMAIN,
        "unprotected_quantities": "\n".join(f"- {text}" for text in listed_assumptions(guarantee))
        or "None: the release contains no quantity that is computed from the data without noise.",
    }


def _loss(guarantee: Guarantee) -> dict[str, Any]:
    pure = guarantee.delta == 0
    return {
        "privacy_unit": _UNITS[guarantee.unit],
        "privacy_unit_details": f"{_UNIT_DETAILS[guarantee.unit]} {_NEIGHBORS[guarantee.neighbors]}",
        "privacy_parameters": {"epsilon": guarantee.epsilon} | ({} if pure else {"delta": guarantee.delta}),
        "privacy_parameters_details": guarantee.sentence(),
    }


def _model(label: Mapping[str, Any], guarantee: Guarantee) -> dict[str, str]:
    # A local model that was fitted where the raw ratings are protects no user from the data owner.
    trust = Trust.CENTRAL if guarantee.reads_raw_ratings else guarantee.trust
    # One of many releases of a continual release (`follow`).
    many = "release" in label["parameters"]
    return {
        "model_name": "Federated" if "parties" in label["parameters"] else _MODELS[trust],
        "model_name_details": _MODEL_DETAILS[trust],
        "actors": _ACTORS[trust],
        "release_type": "Many releases" if many else "One release",
        "release_type_details": "All releases of the period are covered by one cost, spent at its start."
        if many
        else "One file. A ledger counts further releases from the same data if the data owner uses one.",
        "data_source_type": "Dynamic" if many else "Static",
        "data_source_type_details": "New interactions arrive between releases."
        if many
        else "The fit reads the data once.",
        "access_type": "Non-interactive",
        "access_type_details": "Everyone receives the published file. No one queries the original data.",
    }


def _accounting(guarantee: Guarantee) -> dict[str, str]:
    level = f"epsilon {number_above(guarantee.epsilon)}, delta {number_above(guarantee.delta)}"
    return {
        "post_processing": "Shrinkage by the known noise, factorization of released sums, and ranking. "
        "Each uses public numbers and noisy releases only.",
        "composition": "Sequential. All releases of the fit are composed before data is read, and the total "
        f"is {level}. Precisions of Gaussian releases add, and pure losses add.",
    }


def _implementation(label: Mapping[str, Any], guarantee: Guarantee, facts: HumanFacts) -> dict[str, str]:
    origins = "\n".join(f"- {name}: {origin}" for name, origin in label["provenance"].items())
    return {
        "preprocessing_and_hyperparameter_tuning": "Rows are bounded one user at a time: ratings are clipped "
        "to the declared scale, and each user's contribution is scaled to the sensitivity. Settings: "
        f"{json.dumps(label['parameters'])}. The file doesn't state whether settings were tuned on the same "
        "data; a tuning run that touches the data is a release of its own and belongs in the ledger.",
        "mechanisms": f"{_NOISE} Library: discreet, model file format {label['version']}. Security of the "
        f"original data: {facts.text('retention')}. Where each array comes from:\n{origins}",
        "justification": f"{_JUSTIFICATION} {_evidence(guarantee)} Why this amount of privacy was chosen: "
        f"{facts.text('purpose')}",
    }


def _evidence(guarantee: Guarantee) -> str:
    if guarantee.basis is Basis.PROVED:
        return f"The guarantee is proved in {guarantee.proof}, which is part of the package."
    return "The guarantee is as published. The authors of the package could not prove it."


def _notes(facts: HumanFacts, published: str | None) -> str:
    notes = [
        f"Legal basis: {facts.text('legal_basis')}.",
        f"Retention: {facts.text('retention')}.",
        f"Next review: {facts.text('review')}.",
    ]
    if published is None:
        notes.append("publication_date is the day on which this entry was written.")
    if facts.missing:
        notes.append(f"Missing human facts: {', '.join(facts.missing)}.")
    return " ".join(notes)
