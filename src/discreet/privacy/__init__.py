"""Promises, what they cost, and the noise that keeps them. Nothing here knows what a rating is."""
