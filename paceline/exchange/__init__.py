"""How gradients become shared parameters: the strategies and their gates."""
