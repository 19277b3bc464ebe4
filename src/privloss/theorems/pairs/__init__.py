"""Pairs of distributions as objects."""
