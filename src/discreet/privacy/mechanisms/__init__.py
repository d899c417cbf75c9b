"""Define mechanisms: public parameters, the cost of a release, the release, and values for tests."""
