"""Carry messages through Flower without reading them; imports flwr and the standard library alone."""
