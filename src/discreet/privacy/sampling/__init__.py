"""Draw exact integer noise: the samplers and their compiled loops."""
