"""What a federated run asks and answers: both sides of every step."""
