"""Guess from outside: games between two worlds, and what the guesses refute."""
