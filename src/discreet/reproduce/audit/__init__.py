"""Published claims under audit: the experiments. Claims and results are in `papers/audit`."""
