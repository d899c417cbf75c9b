"""Describe and fetch datasets by name, and generate synthetic ones."""
