"""Collect over a whole catalog, so that an answer does not even tell what was rated."""
