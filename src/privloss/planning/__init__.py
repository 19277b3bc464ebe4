"""Backwards: from a promise to its parameters."""
