"""Measure how well a model predicts and ranks what it has not seen, beside simple references."""
