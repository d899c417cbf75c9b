"""Matrices of low rank: the nuclear ball, its projections, and what is minimized over it."""
