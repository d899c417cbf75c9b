"""Implicit factorization: the experiments. Claims and results are in `papers/dpimf`."""
