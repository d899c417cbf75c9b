"""Make synthetic users from what a model released."""
