"""Define mechanisms: public parameters, the cost of a release, the release, and what its tests need."""
