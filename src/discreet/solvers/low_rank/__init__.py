"""Optimize over low-rank matrices: the nuclear-norm ball, its projections, losses and solvers."""
