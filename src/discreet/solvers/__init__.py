"""Fit models by pure numerical functions, independent of users and privacy."""
