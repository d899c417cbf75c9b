"""Implicit factorization by objective perturbation."""
