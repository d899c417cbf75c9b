"""Play many membership games in one fit: each canary is in or out by its own coin."""
