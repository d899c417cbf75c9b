"""Doors that others knock on: the keeper's behind mutual TLS, a party's daemon behind a local socket."""
