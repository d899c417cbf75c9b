"""Output for readers and programs."""
