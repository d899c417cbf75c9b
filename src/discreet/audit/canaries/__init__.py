"""Play many games in one fit: people who are in or out by a coin each."""
