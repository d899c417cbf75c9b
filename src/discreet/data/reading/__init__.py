"""Read a path, a frame or a matrix into columns of users, items, ratings and times."""
