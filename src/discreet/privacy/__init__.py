"""State privacy guarantees, account for their cost, and add the noise. Nothing here reads ratings."""
