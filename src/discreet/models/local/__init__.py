"""Learn from reports of people who do not trust the collector."""
