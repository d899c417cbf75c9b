"""Complete a matrix of likes and dislikes, with noise in one of four places."""
