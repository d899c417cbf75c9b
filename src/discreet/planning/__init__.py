"""What a budget allows before anything is spent: a year's releases, the attacker's odds, likely accuracy."""
