"""The Chernoff bound, which needs one value of M, and the images of periodic sums, which it bounds
(docs/certificates.md, sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from privloss.certificates.balls import Use, given, need
from privloss.certificates.methods.bounds import DeltaBounds, product
from privloss.certificates.pairs.base import Steps


def chernoff(c: arb, mgf: arb, x: arb) -> arb:
    """f(x) <= c^c/(c+1)^(c+1) M(c) e^(-cx): the largest (1 - e^-y) e^(-cy) (Markov's inequality)."""
    return (c * (c / (c + 1)).log() - c * x).exp() / (c + 1) * mgf


def by_chernoff(steps: Steps, use: Use) -> DeltaBounds:
    """The Chernoff bound at one c."""
    c = given(use, "c")
    mgf = product(steps, use, c, arb(0), 0)[0].real
    return lambda x: (arb(0), chernoff(c, mgf, x))


def images(steps: Steps, use: Use, c: arb, length: arb) -> Callable[[arb], arb]:
    """What the images f(x + kL) e^(ckL), k != 0, add to f(x) at most."""
    right = given(use, "c'")
    need(right > c, "aliasing: c' must exceed c")
    mgf = product(steps, use, right, arb(0), 0)[0].real
    left = 1 / ((c * length).exp() - 1)
    share = ((right - c) * length).exp() - 1
    return lambda x: left + chernoff(right, mgf, x) / share
