"""Every error privloss raises on purpose.

::

    PrivlossError
    +-- InvalidInput (also ValueError)     a value breaks a stated rule; nothing was computed
    |   +-- InvalidPlan                    a plan file or plan object breaks the format
    +-- Unsupported (also NotImplementedError)
    |                                      meaningful, but no proven bound is implemented; nothing was guessed
    +-- Unreachable                        no parameter in range meets a calibration's target; says what is reachable
    +-- MissingExtra (also ImportError)    an optional package is not installed; says how to get it

The message is one sentence: the argument, the value given, the rule it breaks.
"""

from __future__ import annotations


class PrivlossError(Exception):
    """Base class of every deliberate error."""


class InvalidInput(PrivlossError, ValueError):
    """An argument breaks a stated rule."""


class InvalidPlan(InvalidInput):
    """A plan breaks the plan format."""


class Unreachable(PrivlossError):
    """No parameter meets the target."""


class Unsupported(PrivlossError, NotImplementedError):
    """There is no proven bound for this combination (yet)."""


class MissingExtra(PrivlossError, ImportError):
    """An optional package is not installed."""
