"""Learn from reports of users who don't trust the collector."""
