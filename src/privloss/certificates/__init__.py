"""Certified answers: a proof in ball arithmetic for every number, and the checker that reads it.

Imports run one way, from below: `balls` (numbers), `pairs` (what a step tells about a record), `methods` (bounds on
delta of a plan), `checker` (reads a claim and decides). Those import python-flint and the plan parser, nothing else.
Above them `models` and `search` choose parameters in floating point, `claim` and `certificate` put claim and
parameters into a file, and `selfcheck` compares certified answers with those of the engine.
"""
