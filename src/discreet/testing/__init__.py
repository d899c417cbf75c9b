"""Provide contract suites and generated data for tests, shipped with the package."""
