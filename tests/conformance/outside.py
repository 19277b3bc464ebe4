"""Mechanisms added from outside, through `pl.register` alone: what docs/extending.md promises them is tested here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import privloss as pl


@dataclass(frozen=True, repr=False)
class Wrapped(pl.Mechanism):
    """A number modulo `modulus` plus discrete Laplace noise, reported modulo `modulus`; sensitivity 1."""

    kind: ClassVar[str] = "outside-wrapped"
    scale: float = pl.parameters.number(above=True)
    modulus: int = pl.parameters.whole(low=2)


def wrapped_pair(m: Wrapped) -> tuple[list[float], list[float]]:
    """Sums of e^-|k|/scale over each residue class (geometric series), shifted by one against not shifted."""
    a = 1 / m.scale
    fold = [math.exp(-a * r) + math.exp(-a * (m.modulus - r)) for r in range(m.modulus)]
    q = [w / math.fsum(fold) for w in fold]
    return q[-1:] + q[:-1], q


def wrapped_step(m: Wrapped, adjacency: str) -> pl.Step:
    return pl.Step.from_vectors(
        *wrapped_pair(m),
        theorem="Wrapped discrete Laplace: a shift by one is worst (the losses are those of one step)",
        assumption=f"wrapped: sensitivity 1 under {adjacency}",
    )


WRAPPED = pl.register(
    pl.Kind(
        "outside-wrapped",
        Wrapped,
        wrapped_step,
        louder=lambda m, factor: replace(m, scale=m.scale * factor),
        grouped=lambda m, people, adjacency: pl.PureDP(people / m.scale),  # a shift by k is k shifts
    )
)


@dataclass(frozen=True, repr=False)
class Skewed(pl.Mechanism):
    """Any uneven pair, from outside."""

    kind: ClassVar[str] = "outside-skewed"
    p: Sequence[float] = pl.parameters.numbers(high=1.0)
    q: Sequence[float] = pl.parameters.numbers(high=1.0)


SKEWED = pl.register(
    pl.Kind(
        "outside-skewed",
        Skewed,
        lambda m, adjacency: pl.Step.from_vectors(m.p, m.q, theorem="as given", assumption=f"worst under {adjacency}"),
    )
)
