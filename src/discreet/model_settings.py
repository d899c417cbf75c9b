"""Look up estimators by name, and read and write their settings as text and TOML."""

from __future__ import annotations

import json
import math
import tomllib
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from discreet.core import ESTIMATORS, FIRST, WrongKind, one_of, shown
from discreet.data import PublicFacts
from discreet.models import (
    BadRecipe,
    BadSettingText,
    Estimator,
    NoPurpose,
    SetForAll,
    SettingsMissing,
    UnknownSetting,
)
from discreet.papers import PAPER_NAMES, paper_at
from discreet.privacy import Guarantee


class _Registry(Mapping[str, type[Estimator]]):
    """Map each name to its estimator; import an estimator's module when it is first looked up."""

    def __getitem__(self, name: str) -> type[Estimator]:
        found: type[Estimator] = ESTIMATORS[name]
        right = isinstance(found, type) and issubclass(found, Estimator) and is_dataclass(found)
        if not right or getattr(found, "name", None) != name:
            raise ESTIMATORS.broken(name, "is not a subclass of Estimator with this name")
        return found

    def __contains__(self, name: object) -> bool:
        return name in ESTIMATORS

    def __iter__(self) -> Iterator[str]:
        return iter(ESTIMATORS)

    def __len__(self) -> int:
        return len(ESTIMATORS)


MODELS: Mapping[str, type[Estimator]] = _Registry()


def estimator(name: str, settings: Mapping[str, Any] | None = None) -> Estimator:
    """Return the estimator called `name` with these settings."""
    kind = _kind(name)
    settings = {**_own_settings(name), **(settings or {})}
    known = {field.name for field in _fields(kind)}
    for key in settings:
        if key not in known:
            raise UnknownSetting(model=name, setting=key, settings=sorted(known))
    required = [
        field.name for field in _fields(kind) if field.default is MISSING and field.default_factory is MISSING
    ]
    missing = [key for key in required if key not in settings]
    if missing:
        raise SettingsMissing(model=name, settings=missing)
    return kind(**settings)


def estimators(
    names: Sequence[str],
    epsilons: Sequence[float],
    delta: float | None,
    *,
    implicit: bool = False,
    purpose: str | None = None,
) -> list[Estimator]:
    """Return every model at every epsilon; a model without a private version appears once, at epsilon=inf.

    A name may carry settings, as in `user-factorization:feedback=implicit`. A `purpose` is that of every
    model that has one and does not say its own.
    """
    if purpose is not None and not any("purpose" in defaults(called.split(":")[0]) for called in names):
        raise NoPurpose(purpose=purpose)
    found: list[Estimator] = []
    for called in names:
        name, *pairs = called.split(":")
        shared = feedback_setting(name, implicit=implicit)
        if "purpose" in defaults(name):
            shared |= purpose_setting(name, purpose)
        shared |= parse_settings(name, pairs)
        for key in ("epsilon", "delta"):
            if key in shared:
                raise SetForAll(model=called, setting=key)
        if delta is not None and "delta" in defaults(name):
            shared["delta"] = delta
        quiet = is_never_private(name) and not _kind(name).published_noise
        levels = [math.inf] if quiet else epsilons
        found += [estimator(name, {"epsilon": level, **shared}) for level in levels]
    return found


def feedback_setting(name: str, *, implicit: bool) -> dict[str, Any]:
    """Return the setting that makes a model learn from implicit feedback; empty if the model has none."""
    return {"feedback": "implicit"} if implicit and "feedback" in defaults(name) else {}


def purpose_setting(name: str, purpose: str | None) -> dict[str, Any]:
    """Return the setting that states what a model's budget is spent on; raise if the model has no choice."""
    if purpose is None:
        return {}
    if "purpose" not in defaults(name):
        raise NoPurpose(purpose=purpose)
    return {"purpose": purpose}


def is_never_private(name: str) -> bool:
    """Return whether a model has no private version: its default is then epsilon=inf."""
    return defaults(name).get("epsilon") == math.inf


def parse_settings(name: str, pairs: Iterable[str]) -> dict[str, Any]:
    """Turn `key=value` texts into settings of the types that `name` declares."""
    return parse_fields(_kind(name), name, pairs)


def parse_fields(kind: type, name: str, pairs: Iterable[str]) -> dict[str, Any]:
    """Turn `key=value` texts into values of the types that a dataclass declares; `name` is for errors."""
    hints = get_type_hints(kind)
    known = {field.name for field in _fields(kind)}
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not separator or not key:
            raise BadSettingText(pair=pair)
        if key not in known:
            raise UnknownSetting(model=name, setting=key, settings=sorted(known))
        settings[key] = _parse(key, text.strip(), hints[key])
    return settings


def defaults(name: str) -> dict[str, Any]:
    """Return the default of every setting that has one."""
    plain = {field.name: field.default for field in _fields(_kind(name)) if field.default is not MISSING}
    return {**plain, **_own_settings(name)}


def example_promise(name: str) -> Guarantee:
    """Return a model's guarantee at epsilon 1, to show its privacy definition; some have none."""
    facts = PublicFacts(n_items=1000, n_users=1024)
    return estimator(name, {"epsilon": math.inf if is_never_private(name) else 1.0}).promise(facts)


def describe_models() -> list[dict[str, str | None]]:
    """Return a row for every model: privacy unit, trust, basis, feedback, summary, source, group and paper.

    The group is `first` (to use first), `papers`, `baselines`, or `others` (of other packages). `paper` is
    the paper whose system a model belongs to, or None.
    """
    rows: list[dict[str, str | None]] = []
    for name, kind in sorted(MODELS.items()):
        promise = example_promise(name)
        private = math.isfinite(promise.epsilon)
        rows.append(
            {
                "name": name,
                "unit": promise.unit.value if private else "nothing",
                "trust": promise.trust.value if private else "nobody",
                "basis": promise.basis.value,
                "feedback": _feedback(kind),
                "summary": (kind.__doc__ or " ").splitlines()[0] + _from_package(name),
                "source": kind.source,
                "group": _group(name),
                "paper": _paper(name),
                "also": ", ".join(own for own, (of, _) in PAPER_NAMES.items() if of == name) or None,
            }
        )
    return rows


def _paper(name: str) -> str | None:
    return paper_at(ESTIMATORS.built_in.get(name, ""))


def _group(name: str) -> str:
    if name in FIRST:
        return "first"
    if ESTIMATORS.package(name) != "discreet":
        return "others"
    return "papers" if _paper(name) else "baselines"


def _from_package(name: str) -> str:
    """State which other package a model comes from: its proof is not ours."""
    package = ESTIMATORS.package(name)
    return "" if package == "discreet" else f" (package {package})"


def _feedback(kind: type[Estimator]) -> str:
    """Return the feedback a model learns from; if it is a setting, all its values."""
    setting = get_type_hints(kind)["feedback"]
    return " or ".join(get_args(setting)) if get_origin(setting) is Literal else kind.feedback


def from_toml(text: str) -> Estimator:
    """Read an estimator from TOML: `model = "name"` and its settings under `[settings]`."""
    try:
        recipe = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadRecipe(reason=str(error)) from error
    unknown = set(recipe) - {"model", "settings"}
    if "model" not in recipe or unknown:
        raise BadRecipe(reason="its tables are wrong")
    return estimator(recipe["model"], recipe.get("settings", {}))


def to_toml(recipe: Estimator) -> str:
    """Write an estimator as TOML that `from_toml` reads back; settings that are None are omitted."""
    lines = [f"model = {json.dumps(recipe.name)}", "", "[settings]"]
    lines += [f"{key} = {_toml(value)}" for key, value in recipe.settings.items() if value is not None]
    return "\n".join(lines) + "\n"


def _own_settings(name: str) -> Mapping[str, Any]:
    """Return the settings that a paper's name implies; a model's own name implies none."""
    return {} if name in ESTIMATORS.built_in else PAPER_NAMES.get(name, (name, {}))[1]


def _kind(name: str) -> type[Estimator]:
    if name not in ESTIMATORS.built_in and name in PAPER_NAMES:
        name = PAPER_NAMES[name][0]
    one_of("model", name, sorted(MODELS))
    return MODELS[name]


def _fields(kind: type) -> tuple[Field[Any], ...]:
    return fields(kind)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else repr(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


# How error messages name the types of settings.
_WORDS = {bool: "true or false", int: "a whole number", float: "a number"}


def _parse(key: str, text: str, hint: Any) -> Any:
    """Read `text` as the type a setting declares."""
    if get_origin(hint) in (Union, types.UnionType):
        if text.lower() == "none" and type(None) in get_args(hint):
            return None
        hint = next(option for option in get_args(hint) if option is not type(None))
    if get_origin(hint) is Literal:
        return text
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        return tuple(_parse(key, part.strip(), inner) for part in text.split(",") if part.strip())
    try:
        if hint is bool:
            return {"true": True, "false": False}[text.lower()]
        if hint is int:
            return int(text)
        if hint is float:
            return float(text)
    except (KeyError, ValueError) as error:
        raise WrongKind(name=key, kind=_WORDS[hint], found=shown(text)) from error
    return text
