"""Backwards: from a promise to the parameters that keep it."""
