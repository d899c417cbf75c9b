"""Carry messages through Flower without reading them; imports only flwr and the standard library."""
