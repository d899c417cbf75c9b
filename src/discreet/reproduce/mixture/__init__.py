"""Bounded Laplace noise and mixtures: the experiments. Claims and results are in `papers/mixture`."""
