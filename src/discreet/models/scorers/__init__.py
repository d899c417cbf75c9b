"""What is released: numbers that may be published, and how they answer one user's history."""
