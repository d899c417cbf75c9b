"""Flower as the transport: it carries sealed bytes between the coordinator and the parties' daemons."""
