"""Certified answers: a proof in ball arithmetic for every number, and the checker that reads it.

`checker` (with `sums`, `pairs`, `densities`, `samplers`) decides; it imports python-flint and the plan parser, nothing
else. `search` chooses parameters in floating point, `certificate` puts claim and parameters into a file.
"""
