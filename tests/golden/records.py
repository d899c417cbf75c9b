"""What is kept of a golden array: a digest of its bits, and numbers that any processor can compare with.

Small arrays are kept in full. Of larger ones four sums with random signs along the first axis are kept for
each column: a change of any entry shows in all four.
"""

import hashlib
import json
import os
import platform
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding
import numpy as np
from threadpoolctl import threadpool_info

FILE = Path(__file__).with_name("arrays.json")
IN_FULL = 64
SUMS = 4
_TINY = 1e-300

# The largest root mean square difference that rounding may cause, relative to the largest |entry|.
# A number that is stored in half precision may round to its neighbor.
ROUNDING = {"float64": 1e-9, "float32": 2.5e-7, "float16": 1e-3}
# Arrays that need more, each with the reason.
_SINGLE = "is computed in single precision, and every sweep starts from the rounding of the last"
_WEIGHTS = "comes from weights of a few hundred cells in single precision, made anew in every step"
MORE_ROUNDING = {
    "*/als inf/*": (3e-5, _SINGLE),
    "*/als inf/item_spreads": (2e-3, "is a small difference of squares kept in single precision"),
    "*/implicit-als inf/item_factors": (3e-4, _SINGLE),
    "small/local-mixture*/user_vectors": (1e-7, _WEIGHTS),
    "small/local-mixture*/item_factors": (1e-7, _WEIGHTS),
    "small/local-mixture*/item_bias": (1e-7, _WEIGHTS),
}


def machine():
    """Return what the last bits of a float depend on: the processor and the numerical libraries.

    Virtual machines of the same name run on processors that differ, so the name alone isn't enough. BLAS also
    chooses the order of its sums by the size of the caches.
    """
    processor = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
        known = dict(
            reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line])
        )
        fields = (known.get(name) for name in ("model name", "cpu family", "model", "stepping"))
        processor = " ".join(filter(None, fields))
    caches = sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    processor = " ".join([processor, *(path.read_text(encoding="utf8").strip() for path in caches)]).strip()
    compiled_for = os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name()
    switches = ("NUMBA_CPU_FEATURES", "NPY_DISABLE_CPU_FEATURES", "GLIBC_TUNABLES")
    settings = [f"{name}={os.environ[name]}" for name in switches if name in os.environ]
    algebra = [found for found in threadpool_info() if found["user_api"] == "blas"]
    kernels = sorted({f"{found['internal_api']} {found.get('architecture')}" for found in algebra})
    libraries = [f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "llvmlite")]
    libc = "".join(platform.libc_ver())
    parts = [platform.machine(), processor or platform.processor(), compiled_for, *settings, *kernels, libc]
    return ", ".join(filter(None, [*parts, *libraries]))


def record(array, made_on):
    """Return what is kept of an array."""
    kept = {"dtype": str(array.dtype), "shape": list(array.shape), "bits": _bits(array), "machine": made_on}
    if array.dtype.kind == "f":
        assert array.size <= IN_FULL or np.isfinite(array).all(), "sums do not tell which entry is not finite"
        kept["scale"] = _short(np.abs(array).max(initial=0))
        kept["numbers"] = [_short(number) for number in numbers_of(array)]
    return kept


def numbers_of(array):
    """Return an array in full or by its sums with random signs, as float64."""
    plain = np.asarray(array, dtype=np.float64)
    if plain.size <= IN_FULL:
        return plain.ravel()
    rows = plain.reshape(len(plain), -1)
    drawn = hashlib.shake_256(b"signs").digest(-(-SUMS * len(rows) // 8))
    signs = 1.0 - 2.0 * np.unpackbits(np.frombuffer(drawn, np.uint8))[: SUMS * len(rows)]
    # Divided by this root, a sum of independent differences is about as large as one of them.
    return (signs.reshape(SUMS, -1) @ rows / np.sqrt(len(rows))).ravel()


def tolerance(key, dtype):
    """Return how far an array may be from the golden one where rounding differs, relative to its scale."""
    more = [wider for name, (wider, _) in MORE_ROUNDING.items() if fnmatchcase(key, name)]
    return max([ROUNDING.get(dtype, 0.0), *more])


def difference(golden, array):
    """Return how far an array is from its record, relative to its scale.

    The same bits are 0 apart, arrays of another type or shape infinitely far.
    """
    if (str(array.dtype), list(array.shape)) != (golden["dtype"], golden["shape"]):
        return np.inf
    if _bits(array) == golden["bits"]:
        return 0.0
    if "numbers" not in golden:
        return np.inf
    wanted, numbers = np.array(golden["numbers"]), numbers_of(array)
    if not np.array_equal(np.isfinite(wanted), np.isfinite(numbers)):
        return np.inf
    apart = np.abs(wanted - numbers)[np.isfinite(wanted)].max(initial=0)
    # What is not the same is never called so, even if twelve digits are.
    return max(float(apart) / max(golden["scale"], _TINY), np.finfo(np.float64).eps)


def changed(golden, key, array, here):
    """Return a sentence on what is wrong with an array, or an empty one; `here` is this machine."""
    if key not in golden:
        return f"{key} is new: run `make golden` and look at what it adds."
    kept = golden[key]
    found, allowed = difference(kept, array), tolerance(key, kept["dtype"])
    if found == 0:
        return ""
    if kept["machine"] == here:
        return f"{key} has other bits than on the same machine before, by {found:.1e} of its scale."
    return (
        ""
        if found <= allowed
        else f"{key} differs by {found:.1e} of its scale; rounding explains {allowed:.1e}."
    )


def read():
    """Return the golden records by key."""
    kept = json.loads(FILE.read_text(encoding="utf8"))
    return {key: {**one, "machine": kept["machines"][one["machine"]]} for key, one in kept["arrays"].items()}


def write(records):
    """Write golden records, one on a line."""
    machines = sorted({one["machine"] for one in records.values()})
    lines = [
        f"{json.dumps(key)}: {json.dumps({**one, 'machine': machines.index(one['machine'])})}"
        for key, one in records.items()
    ]
    text = (
        '{"machines": ' + json.dumps(machines, indent=1) + ',\n"arrays": {\n' + ",\n".join(lines) + "\n}}\n"
    )
    FILE.write_text(text, encoding="utf8")


def _bits(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _short(number):
    return float(f"{number:.12g}")
