"""What happens once before all tests."""

from importlib.util import find_spec
from pathlib import Path

from kernel_caches import forget_stale


def pytest_configure():
    """See to it that tests run on the kernels as they are written now."""
    forget_stale(Path(find_spec("discreet").origin).parent)
