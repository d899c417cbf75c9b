"""Bounded Laplace noise on each rating, a mixture of Gaussians as noise model, and the paper's baselines."""
