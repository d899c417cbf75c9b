"""Mechanisms: public parameters, what a release costs, the release itself, and what its tests need."""
