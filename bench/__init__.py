"""Measurements: side by side with peers, and over all regimes."""
