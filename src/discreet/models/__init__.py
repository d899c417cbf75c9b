"""Estimators that state a guarantee, spend its budget and train, and the fitted models they release."""
