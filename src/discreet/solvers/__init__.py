"""Fit models by pure numerical functions that know neither people nor privacy."""
