"""Factor ratings along noisy directions: Frank-Wolfe, one covariance, projected gradients."""
