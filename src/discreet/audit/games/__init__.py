"""Play black-box games between two neighboring datasets, and bound epsilon by the guesses."""
