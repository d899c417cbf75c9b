"""Identify the members of a run: keys, certificates, and the agreement of all members."""
