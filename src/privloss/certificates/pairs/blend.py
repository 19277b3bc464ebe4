"""One of several pairs at random, and which one is shown: samplers whose luck may be revealed."""

from __future__ import annotations

from flint import acb, arb

from privloss.certificates.balls import Use
from privloss.certificates.pairs.base import Pair


class Blend(Pair):
    """One of several pairs at random, and which one is shown."""

    def __init__(self, parts: list[tuple[arb, Pair]], infinite: arb) -> None:
        self.parts = parts
        self.infinite = infinite + sum((w * pair.infinite for w, pair in parts), arb(0))
        self.dropped = sum((w * pair.dropped for w, pair in parts), arb(0))

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        lines = [[w * value for value in pair.line(c, step, count, use)] for w, pair in self.parts]
        return [sum(values, acb(0)) for values in zip(*lines, strict=True)]

    def thinned(self, use: Use) -> arb:
        return sum((w * pair.thinned(use) for w, pair in self.parts), arb(0))

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        return sum((w * pair.beyond(c, t, use) for w, pair in self.parts), arb(0))
