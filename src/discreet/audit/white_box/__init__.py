"""Record and replay the mechanism calls of a fit, and compute the exact privacy cost."""
