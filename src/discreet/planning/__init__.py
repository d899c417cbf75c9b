"""Plan before spending: a year's releases, an attacker's chances, expected accuracy, and the model to use."""
