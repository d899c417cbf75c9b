"""Compiled loops that turn one person's row into what that person tells."""
