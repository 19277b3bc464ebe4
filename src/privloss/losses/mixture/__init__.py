"""The Poisson-sampled Gaussian."""
