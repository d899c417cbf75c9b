"""One-bit matrix completion: noise on the ratings, the objective, the gradients or the output."""
