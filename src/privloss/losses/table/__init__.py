"""Losses with finitely many values."""
