"""Only `privacy` makes noise: no other module constructs a mechanism, draws, or opens a session.

The rule is on syntax trees. A mechanism is any class of `privacy/mechanisms` with a method that takes a
`random` source. Outside `privacy`, such a class may appear in imports, annotations and type tests alone. So
code can neither call it, nor keep it under another name, in a table or in an argument, and call it later.
"""

import ast
import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path

import pytest

import discreet
from discreet.privacy import mechanisms
from discreet.privacy.session import Session

ROOT = Path(discreet.__file__).parent
PRIVACY = "privacy/"
# Contract suites and audits replace methods of mechanisms to see what they are given, so they name classes.
MAY_NAME = ("testing/", "audit/")
# Device kernels draw on behalf of one user. Keys and seeds are tokens, which are not noise.
MAY_DRAW = ("collect/", "core/randomness.py")
# The secrets and the noise of a release, by names and by types of parameters.
DATA_TYPES, NOISE_NAMES = ("Interactions", "DataSource", "Rows", "Block"), {"multiplier", "sigma", "noise"}


@cache
def parsed(text):
    """Return the syntax tree of a module; several rules read it."""
    return ast.parse(text)


@cache
def nodes(text):
    """Return all nodes of a module."""
    return tuple(ast.walk(parsed(text)))


def draws(kind):
    """Return whether a class has a method that takes a random source."""
    for _, method in inspect.getmembers(kind, inspect.isroutine):
        try:
            if "random" in inspect.signature(method).parameters:
                return True
        except ValueError:
            continue
    return False


def mechanism_classes():
    """Return the names of all concrete classes of `privacy/mechanisms` that draw."""
    found = set()
    for info in pkgutil.iter_modules(mechanisms.__path__):
        module = importlib.import_module(f"{mechanisms.__name__}.{info.name}")
        for name, kind in inspect.getmembers(module, inspect.isclass):
            if kind.__module__ == module.__name__ and not inspect.isabstract(kind) and draws(kind):
                found.add(name)
    return found


CLASSES = mechanism_classes()
DRAWS = {"add_discrete_laplace", "add_discrete_gaussian"}
SECRETS = {"_source", "_random"}
TYPE_TESTS = {"isinstance", "issubclass"}


def annotations(tree):
    """Return all nodes inside annotations, type tests, patterns and type aliases."""
    found = set()
    for node in ast.walk(tree):
        harmless = []
        match node:
            case ast.AnnAssign():
                harmless = [node.annotation]
            case ast.arg():
                harmless = [node.annotation]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                harmless = [node.returns]
            case ast.Call(func=ast.Name(id=name), args=[_, kinds]) if name in TYPE_TESTS:
                harmless = [kinds]
            case ast.Compare(left=ast.Call(func=ast.Name(id="type"))):
                harmless = node.comparators
            case ast.MatchClass():
                harmless = [node.cls]
            case ast.Call(func=ast.Name(id="cast"), args=[kind, _]):
                harmless = [kind]
            case ast.Assign(value=ast.BinOp(op=ast.BitOr())):
                # A union is an alias of types, and a union cannot be called.
                harmless = [node.value]
        for root in filter(None, harmless):
            found.update(ast.walk(root))
    return found


def names_of(tree, wanted):
    """Return the local names of wanted names, however they are imported or renamed."""
    local = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            for alias in node.names:
                name = alias.name.rpartition(".")[2]
                if name in wanted:
                    local[alias.asname or name] = name
    return local


def strays(text, wanted):
    """Return lines that use a wanted class or function as a value: a call, an alias, an argument, a base."""
    if not any(name in text for name in wanted):
        return []
    tree = parsed(text)
    local, harmless = names_of(tree, wanted), annotations(tree)
    found = []
    for node in ast.walk(tree):
        if node in harmless:
            continue
        if isinstance(node, ast.Name) and node.id in local:
            found.append((node.lineno, local[node.id]))
        if isinstance(node, ast.Attribute) and node.attr in wanted:
            found.append((node.lineno, node.attr))
        if isinstance(node, ast.Constant) and node.value in wanted and _looked_up(tree, node):
            found.append((node.lineno, node.value))
    return sorted(found)


def _looked_up(tree, constant):
    """Return whether a text is an argument of getattr, or a key of a module's names."""
    return any(
        (isinstance(node, ast.Subscript) and node.slice is constant)
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "getattr"
            and constant in node.args
        )
        for node in ast.walk(tree)
    )


def opened(text):
    """Return lines that read the secrets of an object other than their own `self`."""
    if not any(name in text for name in SECRETS):
        return []
    return sorted(
        (node.lineno, node.attr)
        for node in nodes(text)
        if isinstance(node, ast.Attribute)
        and node.attr in SECRETS
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    )


def drawn(text):
    """Return lines that draw: the method `bytes` of any object, or a kernel of additive noise."""
    return sorted(
        (node.lineno, "bytes")
        for node in (nodes(text) if "bytes" in text else ())
        if isinstance(node, ast.Attribute) and node.attr == "bytes"
    ) + strays(text, DRAWS)


@cache
def sources():
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf8")
        for path in sorted(ROOT.rglob("*.py"))
    }


def modules(*without):
    return {name: text for name, text in sources().items() if not name.startswith((PRIVACY, *without))}


def calls(text):
    """Return lines that construct a mechanism, by its class or by a method such as `calibrated`."""
    if not any(name in text for name in CLASSES):
        return []
    tree = parsed(text)
    local = names_of(tree, CLASSES)

    def names(node):
        if isinstance(node, ast.Name) and node.id in local:
            return local[node.id]
        if isinstance(node, ast.Attribute):
            return node.attr if node.attr in CLASSES else names(node.value)
        return None

    return sorted(
        (node.lineno, names(node.func))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and names(node.func)
    )


def test_all_mechanisms_are_known():
    assert {
        "BoundedLaplace",
        "ClampedLaplace",
        "Gaussian",
        "HiddenNumbers",
        "HiddenStars",
        "ImportanceSampling",
        "Laplace",
        "ModifiedLaplace",
        "NoisyThreshold",
        "RandomizedResponse",
        "SignFlip",
    } <= CLASSES
    assert set(Session.__slots__) >= SECRETS


def test_no_module_outside_privacy_uses_a_mechanism_class_as_a_value():
    found = {name: where for name, text in modules(*MAY_NAME).items() if (where := strays(text, CLASSES))}
    assert found == {}


def test_no_module_outside_privacy_constructs_a_mechanism():
    found = {name: where for name, text in modules().items() if (where := calls(text))}
    assert found == {}


def test_no_module_opens_a_session():
    assert {name: where for name, text in modules().items() if (where := opened(text))} == {}


def reaching(text):
    """Return functions that take data, a random source and the size of noise together."""
    found = []
    if "PrivacyRandom" not in text:
        return found
    for node in nodes(text):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            types = {one.arg: ast.unparse(one.annotation) if one.annotation else "" for one in given}
            data = any(
                name == "data" or any(one in kind for one in DATA_TYPES) for name, kind in types.items()
            )
            random = any("PrivacyRandom" in kind for kind in types.values())
            sized = types.keys() & NOISE_NAMES or any(
                one in kind for kind in types.values() for one in ("Gaussian", "Laplace")
            )
            if data and random and sized:
                found.append((node.lineno, node.name))
    return found


def test_no_function_takes_data_a_random_source_and_the_size_of_noise():
    assert {name: where for name, text in sources().items() if (where := reaching(text))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "def train(data: Interactions, random: PrivacyRandom, multiplier: float): ...",
        "def train(rows: Rows, *, sigma: float, random: PrivacyRandom | None): ...",
        "class A:\n    def _items(self, data: Interactions, how: Gaussian, random: PrivacyRandom): ...",
    ],
)
def test_a_function_that_takes_all_three_is_found(text):
    assert reaching(text) and not reaching(text.replace("PrivacyRandom", "int"))


def test_only_device_kernels_draw():
    assert {name: where for name, text in modules(*MAY_DRAW).items() if (where := drawn(text))} == {}


IMPORTS = "from discreet.privacy.mechanisms.additive import Gaussian\n"
WRONG = [
    IMPORTS + "noise = Gaussian(sigma=1.0, l2_sensitivity=1.0)",
    IMPORTS + "noise = Gaussian.calibrated(epsilon=1.0, delta=1e-6, l2_sensitivity=1.0)",
    IMPORTS + "make = Gaussian\nmake(sigma=1.0, l2_sensitivity=1.0)",
    IMPORTS + "table = {'gaussian': Gaussian}",
    IMPORTS + "def made(kind=Gaussian): return kind(sigma=1.0, l2_sensitivity=1.0)",
    IMPORTS + "made(Gaussian)",
    IMPORTS + "class Mine(Gaussian): ...",
    IMPORTS + "make = Gaussian.__call__ if True else None",
    IMPORTS + "x: Gaussian = Gaussian(sigma=1.0, l2_sensitivity=1.0)",
    IMPORTS + "isinstance(Gaussian(sigma=1.0, l2_sensitivity=1.0), Gaussian)",
    "from discreet.privacy.mechanisms.additive import Gaussian as Harmless\nHarmless(sigma=1.0)",
    "from discreet.privacy.session import Laplace\nLaplace(scale=1.0, l1_sensitivity=1.0)",
    "from discreet.collect import BoundedLaplace as B\nB(epsilon=1.0, low=1, high=5)",
    "from discreet.privacy.mechanisms import additive\nadditive.Laplace(scale=1.0, l1_sensitivity=1.0)",
    "import discreet.privacy.mechanisms.additive as a\na.Laplace.calibrated(epsilon=1.0, l1_sensitivity=1.0)",
    "import discreet\ndiscreet.privacy.mechanisms.cells.HiddenStars(epsilon=1.0)",
    "def late():\n    from discreet.privacy.mechanisms.cells import HiddenStars\n    HiddenStars(epsilon=1)",
    IMPORTS + "noise = Gaussian(sigma=1.0, l2_sensitivity=1.0) | None",
    IMPORTS + "if type(noise) is Gaussian(sigma=1.0, l2_sensitivity=1.0): ...",
    "from discreet.privacy import session\nvars(session)['Laplace'](scale=1.0, l1_sensitivity=1.0)",
    "getattr(text, 'upper')()\nfrom discreet.privacy import session\ngetattr(session, 'Laplace')(scale=1.0)",
    "from discreet.privacy import session\ngetattr(session, 'Gaussian')(sigma=1.0, l2_sensitivity=1.0)",
]
RIGHT = [
    IMPORTS + "def cost(noise: Gaussian | None) -> Gaussian | None: return noise",
    IMPORTS + "isinstance(noise, Gaussian)",
    IMPORTS + "type(noise) is Gaussian",
    IMPORTS + "match noise:\n    case Gaussian(): pass",
    "from discreet.privacy.mechanisms.local import sign_flip\nsign_flip(1.0).release(bits, random)",
    "Gaussian = 'a word'\nGaussian.upper()",
]


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_module_is_found(text):
    assert strays(text, CLASSES) or calls(text)


@pytest.mark.parametrize("text", RIGHT)
def test_types_and_factories_are_no_constructions(text):
    assert not strays(text, CLASSES) and not calls(text)


def test_a_constructed_mechanism_is_found_also_where_classes_may_be_named():
    assert calls(WRONG[0]) and calls(WRONG[1]) and calls(WRONG[10]) and calls(WRONG[13]) and calls(WRONG[14])


@pytest.mark.parametrize(
    "text",
    [
        "def _train(self, session, progress): return session._source",
        "def _train(self, part, progress): return part.split()[0]._random",
        "source = self.session._source",
    ],
)
def test_an_opened_session_is_found(text):
    assert opened(text) and not opened("self._source = 1")


@pytest.mark.parametrize(
    "text",
    [
        "words = random.bytes(8)",
        "take = random.bytes\ntake(8)",
        "from discreet.privacy.sampling.draws import add_discrete_laplace as add\nadd(sums, 1.0, random)",
        "from discreet.privacy.sampling import draws\ndraws.add_discrete_gaussian(sums, 1.0, random)",
    ],
)
def test_a_draw_is_found(text):
    assert drawn(text) and not drawn("data = bytes(8)")
