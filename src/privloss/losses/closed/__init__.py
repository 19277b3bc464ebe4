"""Losses whose transform has a closed form."""
