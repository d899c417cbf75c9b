"""Compiled loops of the solvers, on plain arrays and a range of rows."""
