"""Errors that carry data: a stable code, typed fields, and one template for each way to call discreet.

A package declares its errors in its `errors.py`, two to five lines each:

    class UnknownItems(DataError):
        count: int
        of: int
        where: str = "history"
        text = "{count} of {of} items in the {where} aren't in the model's catalog. Remove them."

and raises `UnknownItems(count=3, of=12)`. The code is the name of the class in small letters,
`unknown-items`. A class that is renamed keeps its code with `code = "..."`. A template states what happened,
why, and what to do. If the caller may wonder, it ends with the side effect ("No budget was spent."). In a
template,

- `{count}` is a field or a property of the class, and `{value!r}` its representation, cut if it is long;
- `{count:row|rows}` is "1 row" or "3 rows";
- `{names:and}` and `{names:or}` list quoted values, `{names:all}` and `{names:any}` list them without quotes;
- `{close:?}` is " Did you mean 'x'?", or nothing for None;
- `{arg:duplicates=last}` names an argument as the caller writes it: `duplicates="last"` in Python,
  `--duplicates last` on the command line, `"duplicates": "last"` in JSON.

If the advice for the command line or for HTTP differs, a template in `cli/messages.py` or
`service/limits.py` replaces the default one by code. Fields never contain a record: they count rows and
name columns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from string import Formatter
from typing import Any, ClassVar, NamedTuple, dataclass_transform

# Control characters and characters that change the direction of text; line breaks are kept.
_CONTROL = [*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
_SHOWN = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROL if code != 0x0A}

# Longer representations are cut, and longer lists end with a count.
_LONGEST, _MOST_NAMES = 120, 12
# What is not part of an address, such as an @ in a query, may be hidden as well. A path has no double slash.
_PASSWORD = re.compile(
    r"(\b[a-z][a-z0-9+.-]+:/{1,2}[^/:@]*:)(?:(?:(?!::).)+|.+)(?=@)|([?&](?:ssl)?password=).*?(?=&|::|$)"
    r"|((?:^|\s)(?:ssl)?password\s*=\s*)(?:'[^']*'|.*?)(?=\s|::|$)",
    re.I | re.S,
)

# Longer words are similar to nothing, and two letters abbreviate anything.
_LONGEST_WORD, _SHORTEST_ABBREVIATION = 100, 3

# What exceptions of Python, this class and the formatter use themselves.
_RESERVED = {"code", "text", "fields", "facts", "template", "spent", "arg"} | set(dir(OSError))


def visible(text: str) -> str:
    """Return text with control characters escaped: IDs from untrusted files may contain some."""
    return text.translate(_SHOWN)


class Spent(NamedTuple):
    """Budget that stays spent although the release failed."""

    epsilon: float
    delta: float
    dataset: str

    def __str__(self) -> str:
        """Return the side effect as a sentence."""
        return (
            f"Budget already spent on this release is not returned: epsilon={self.epsilon:g}, "
            f"delta={self.delta:g} of {self.dataset!r}."
        )


@dataclass_transform(kw_only_default=True)
class DiscreetError(Exception):
    """A problem that the caller can fix."""

    code: ClassVar[str] = "discreet"
    text: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ()
    spent: Spent | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Collect the fields, put the template on one line, and derive the code from the name."""
        super().__init_subclass__(**options)
        # A template may run over several lines of source.
        cls.text = " ".join(cls.text.split())
        own = [name for name, kind in cls.__annotations__.items() if not str(kind).startswith("ClassVar")]
        if taken := _RESERVED.intersection(own):
            raise TypeError(f"{cls.__name__} can't name a field {', '.join(sorted(taken))}.")
        cls.fields = (*cls.fields, *(name for name in own if name not in cls.fields))
        if "code" not in vars(cls):
            name = cls.__name__.removesuffix("Error")
            cls.code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()

    def __init__(self, *sentence: Any, **facts: Any) -> None:
        super().__init__(*sentence)
        if not sentence:
            unknown = facts.keys() - {*self.fields, "spent"}
            missing = [name for name in self.fields if name not in facts and not hasattr(type(self), name)]
            if unknown or missing:
                raise TypeError(f"{type(self).__name__} has the fields {self.fields}, not {tuple(facts)}.")
        vars(self).update(facts)

    def __str__(self) -> str:
        """Return the message on one line, in the words of Python."""
        return message(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to build the error again: exceptions know only their positional arguments."""
        return _rebuilt, (type(self), self.args, vars(self))

    def facts(self) -> dict[str, Any]:
        """Return the fields by name, without passwords: a mistyped address arrives as a path or a name."""
        return {name: _hidden(getattr(self, name)) for name in self.fields}

    def template(self) -> str:
        """Return the template of the message; a class whose advice depends on its fields overrides this."""
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Return the code and the fields, as JSON can store them."""
        found = {"code": self.code, **{name: _plain(value) for name, value in self.facts().items()}}
        return found if self.spent is None else {**found, "spent": self.spent._asdict()}


class ParameterError(DiscreetError, ValueError):
    """An argument that breaks its rule."""


class DataError(DiscreetError, ValueError):
    """Data that can't be used. The message quotes none of it."""


class FileError(DiscreetError, OSError):
    """A file that is missing, damaged, not ours, or can't be written."""


class CannotWrite(FileError):
    path: Path
    why: str | None
    text = "{path} can't be written: {why}. Create its folder, make it writable, or choose another place."


class PrivacyError(DiscreetError, RuntimeError):
    """An action that would break a privacy guarantee. It was not done."""


class BudgetError(PrivacyError):
    """A request that exceeds the budget. No budget was spent."""


class Dialect:
    """One way to call discreet: how it writes arguments, and the templates that differ there."""

    def __init__(self, templates: Mapping[str, str] | None = None) -> None:
        self.templates: Mapping[str, str] = templates or {}

    def argument(self, name: str, value: str) -> str:
        """Return an argument as the caller writes it; `value` may be empty."""
        if not value:
            return name
        literal = re.fullmatch(r"[-+.\d]\S*|True|False|None|math\.inf|[\[({].*", value)
        return f"{name}={value}" if literal else f'{name}="{value}"'


PYTHON = Dialect()


def message(error: DiscreetError, dialect: Dialect = PYTHON) -> str:
    """Return what happened, why, and what to do, on one line and in the words of a dialect."""
    if error.args:
        told = Exception.__str__(error)
    else:
        told = _Filled(error, dialect).format(dialect.templates.get(error.code) or error.template())
    if error.spent is not None:
        told = f"{told} {error.spent}"
    return visible(told).replace("\n", "\\n")


class _Filled(Formatter):
    """A template filled with the fields and properties of an error."""

    def __init__(self, error: DiscreetError, dialect: Dialect) -> None:
        self._error, self._dialect = error, dialect

    def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
        return self._dialect if key == "arg" else _hidden(getattr(self._error, str(key)))

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return shown(value) if conversion == "r" else super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Dialect):
            name, _, given = format_spec.partition("=")
            return value.argument(name, given)
        if format_spec == "?":
            return "" if value is None else f" Did you mean {value!r}?"
        if format_spec in ("and", "or"):
            return listed([repr(one) if isinstance(one, str) else str(one) for one in value], format_spec)
        if format_spec in ("all", "any"):
            return listed([str(one) for one in value], "and" if format_spec == "all" else "or")
        if "|" in format_spec:
            one, many = format_spec.split("|")
            return f"{value:,} {one if value == 1 else many}"
        if not format_spec and isinstance(value, float):
            return f"{value:g}"
        return format(value, format_spec) if format_spec else str(value)


def without_password(address: object) -> str:
    """Return an address as pages, logs and errors may show it: with the word PASSWORD for a password."""
    return _PASSWORD.sub(r"\1\2\3PASSWORD", str(address))


def _hidden(field: Any) -> Any:
    plain = without_password(field) if isinstance(field, str | Path) else field
    return field if plain == str(field) else plain


def shown(value: object) -> str:
    """Return the representation of a value, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def listed(names: list[str], word: str = "and") -> str:
    """Return a list with serial commas: a, b, and c."""
    if len(names) > _MOST_NAMES:
        names = [*names[:_MOST_NAMES], f"{len(names) - _MOST_NAMES} more"]
    if len(names) <= 2:
        return f" {word} ".join(names)
    return f"{', '.join(names[:-1])}, {word} {names[-1]}"


def _rebuilt(kind: type[DiscreetError], sentence: tuple[Any, ...], state: dict[str, Any]) -> DiscreetError:
    error = kind.__new__(kind, *sentence)
    # An OSError takes its arguments in __init__, which isn't called here.
    error.args = sentence
    vars(error).update(state)
    return error


def _plain(value: Any) -> Any:
    """Return a field as a JSON value; what JSON doesn't know becomes its text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return value.item() if hasattr(value, "item") else str(value)


class WrongKind(ParameterError):
    name: str
    kind: str
    found: str
    text = "{arg:{name}} must be {kind}, not {found}. Pass {kind}."
    how: ClassVar[Mapping[str, str]] = {
        "ledger": " Open a ledger with Ledger.open(path).",
        "model": " Fit a model, or load one with discreet.load(path).",
        "data": " Read a file with discreet.read(path).",
        "path": " For a table in memory, call discreet.from_frame.",
    }

    def template(self) -> str:
        """Return the template; for common objects it states how to get one."""
        return self.text + self.how.get(self.name, "")


class CallOfAnotherLibrary(ParameterError):
    given: Collection[str]
    text = """recommend takes no {given:and}, and a model contains no users. Pass the history, a list of
    items, and their number as k: model.recommend(history, k=10). For many users, call
    model.recommend_all(histories)."""


class OutOfRange(ParameterError):
    name: str
    value: object
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    text = "{arg:{name}} is {value!r}. It must be {range}."

    def template(self) -> str:
        """Return the template; for epsilon it states how to train without privacy."""
        without = " For a run without privacy, pass {arg:epsilon=math.inf}."
        return self.text + (without if self.name == "epsilon" and self.below is self.most is None else "")

    @property
    def range(self) -> str:
        """The allowed range in words."""
        ends = [
            f"{words} {number:g}"
            for words, number in (
                ("at least", self.least),
                ("greater than", self.above),
                ("at most", self.most),
                ("less than", self.below),
            )
            if number is not None and abs(number) != float("inf")
        ]
        finite = ["finite"] if float("inf") in (self.most, self.below) else []
        return " and ".join(ends + finite)


class BrokenRule(ParameterError):
    name: str
    value: object
    must: str
    do: str = ""
    text = "{arg:{name}} is {value!r}. It must {must}."

    def template(self) -> str:
        """Return the template; some rules have advice of their own."""
        return self.text + (" {do}" if self.do else "")


class UnknownChoice(ParameterError):
    name: str
    value: object
    choices: Collection[object]
    text = "{arg:{name}} is {value!r}, which isn't one of the choices.{close:?} Pass {choices:or}."

    @property
    def close(self) -> str | None:
        """The most similar choice."""
        return most_similar(self.value, map(str, self.choices)) if isinstance(self.value, str) else None


class FileUnreadable(FileError):
    path: object
    reason: str
    text = "{path} can't be read: {reason}. Check the path, its permissions, and its content."


class OutputIsInput(FileError):
    path: object
    text = "{path} is also read by this command, so it was not changed. Choose another output."


class NotOurs(FileError):
    path: object
    kind: str
    text = "{path} isn't a {kind} and was not changed. Choose another output, or remove it."


class FileExists(FileError):
    path: object
    replaceable: bool = True
    text = """{path} already exists, so it was not changed. Choose another name, or pass {arg:force=True} to
    replace it."""

    def template(self) -> str:
        """Return the template; most commands can replace a file that they wrote."""
        return self.text if self.replaceable else self.text.partition(", or")[0] + "."


class NoSuchFile(FileError):
    path: object
    kind: str
    text = "{path} doesn't exist, or isn't a file: expected a {kind}. Check the name and the folder."


class ExtraMissing(ParameterError):
    package: str
    extra: str
    text = "This needs {package}, which isn't installed. Install it: pip install '{extra}'."


class BadEnding(FileError, ParameterError):
    path: object
    endings: tuple[str, ...]
    text = """The name {path} must end in {endings:any}, because the ending selects the format. Choose another
    name."""


class ArgumentMissing(ParameterError):
    names: tuple[str, ...]
    text = "The call needs {names:any}, but none was passed. Pass one of them."


class NotASource(PrivacyError):
    text = """A source of noise can't be constructed, copied, or pickled, because two sources could then draw
    the same noise. Use PrivacyRandom.from_os() or simulate(seed)."""


class ScriptTooShort(ParameterError):
    left: int
    asked: int
    text = """The script has {left:byte|bytes} left, but {asked} were requested. Pass a longer script to the
    code that draws."""


class RegisteredTwice(DiscreetError):
    noun: str
    name: str
    packages: tuple[str, ...]
    text = """The packages {packages:all} both register the {noun} {name!r}, but a name must be unique.
    Uninstall one of them."""


class BrokenPlugin(DiscreetError):
    noun: str
    name: str
    package: str
    fault: str
    text = "The {noun} {name!r} of the package {package} {fault}. Update or uninstall that package."


class BadSparseMatrix(DataError):
    part: str
    text = """The {part} of the sparse matrix don't fit the other parts. Build the matrix from one source,
    with weights of at least 0."""


class DomainError(ParameterError):
    name: str
    rule: str
    shape: bool = False
    text = "{name} is outside its domain: it must {rule}. Build the statistic with values in its domain."


class TooManyUsers(DataError):
    most: int
    text = """The data has more than {most:user|users}, but sums are exact only up to that number. Use fewer
    users."""


class OtherStatistic(DataError):
    text = "These are sums of different statistics, which don't add up. Add only sums of one statistic."


class NotFiniteArray(DataError):
    name: str
    text = "{name} isn't a regular array of finite numbers. Remove NaN, infinity, and text."


def most_similar(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, or None if none is similar.

    An abbreviation, such as usr-fact, is similar to the shortest word that has its letters in this order.
    """
    from difflib import get_close_matches

    words, asked = list(known), word.lower()[:_LONGEST_WORD]
    # The same letters in another order are a slip of the fingers.
    close = [one for one in words if sorted(one) == sorted(asked)]
    close = close or get_close_matches(asked, words, n=1, cutoff=0.7)
    close = close or sorted((one for one in words if _abbreviates(asked, one)), key=len)
    return close[0] if close else None


def _abbreviates(short: str, word: str) -> bool:
    letters = iter(word)
    return (
        len(short) >= _SHORTEST_ABBREVIATION and short[0] == word[:1] and all(one in letters for one in short)
    )
