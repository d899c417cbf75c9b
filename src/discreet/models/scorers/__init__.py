"""What is released: numbers that may be published, and how they answer one person's history."""
