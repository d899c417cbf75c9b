"""Estimators that promise, pay and train, and the fitted models they release."""
