"""What happens once before all tests: how Hypothesis draws examples, and which kernels are run."""

from importlib.util import find_spec
from pathlib import Path

from hypothesis import settings

from kernel_caches import forget_stale

# The default run is the same on every machine; `make test-random` looks further, with fresh seeds.
settings.register_profile("default", derandomize=True, max_examples=50, deadline=None)
settings.register_profile("random", derandomize=False, max_examples=1_000, deadline=None, print_blob=True)
settings.load_profile("default")


def pytest_configure():
    """See to it that tests run on the kernels as they are written now."""
    forget_stale(Path(find_spec("discreet").origin).parent)
