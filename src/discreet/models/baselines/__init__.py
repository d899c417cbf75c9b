"""Baselines without privacy, to compare with."""
