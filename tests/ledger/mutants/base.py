"""How a safeguard is taken out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One safeguard taken out: every `old` in a file becomes `new`. `test` is tried first, then all tests."""

    name: str
    file: str
    old: str
    new: str
    test: str
