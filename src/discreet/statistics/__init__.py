"""Map each user to a bounded vector, and sum these vectors exactly over all users."""
