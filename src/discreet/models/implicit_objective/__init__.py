"""Factor choices by solving each item's problem from noisy sums over people."""
