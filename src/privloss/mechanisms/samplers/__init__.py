"""Mechanisms that see a random sample of the data: which sampler ran is part of what ran.

For `shuffle` and `allocation` one count of a plan is one epoch, a pass over the data in `steps` batches; for all others
it is one step.
"""
