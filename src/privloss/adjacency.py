"""What neighbouring means: which two data sets a promise compares."""

from __future__ import annotations

ADD_REMOVE = "add-remove"  # one record more or less
REPLACE_ONE = "replace-one"  # one record exchanged for another; the neighbours have no order
ZERO_OUT = "zero-out"  # one record exchanged for a null record
ADJACENCIES = (ADD_REMOVE, REPLACE_ONE, ZERO_OUT)
