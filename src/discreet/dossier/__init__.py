"""Documents about a release for registries, regulators, and privacy officers."""
