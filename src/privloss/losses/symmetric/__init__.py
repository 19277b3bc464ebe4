"""Symmetric pairs of sampled Gaussian noise, split by the largest loss."""
