"""Losses with a density, read at quadrature nodes."""
