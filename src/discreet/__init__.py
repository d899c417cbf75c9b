"""Recommendations that keep a secret: learned with a proven differential-privacy promise."""
