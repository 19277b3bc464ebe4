"""Gaussian noise around one of several shifts: groups on a Poisson sample, and Gaussian mixtures."""
