"""From a path, a frame or a matrix to columns of people, items, ratings and times."""
