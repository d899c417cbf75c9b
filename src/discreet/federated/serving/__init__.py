"""Serve the members of a run: the keeper over mutual TLS, a party's daemon on a local socket."""
