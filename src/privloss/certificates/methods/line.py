"""The line: a trapezoid rule for the inversion of M, with its images and its cut (docs/certificates.md, section 3)."""

from __future__ import annotations

from flint import acb, arb

from privloss.certificates.balls import MOST_NODES, Use, given, tail, whole
from privloss.certificates.budget import charge
from privloss.certificates.methods.bounds import DeltaBounds, Enclosure, part, product
from privloss.certificates.methods.chernoff import images
from privloss.certificates.pairs.base import Normal, Steps


def by_line(steps: Steps, use: Use) -> DeltaBounds:
    """The trapezoid rule on Re z = c, period L, nodes -N..N, and the cut beyond them.

    With a blur, Z + W is read instead, W ~ N(mu^2/2, mu^2) independent: f only grows (Jensen, E e^-W = 1), and
    f(x) >= f_(Z+W)(x + w) - P[W > w].
    """
    c, length, count = given(use, "c"), given(use, "L"), whole(use, "N", MOST_NODES)
    blur = given(use, "blur") if "blur" in use else arb(0)
    moved = given(use, "w") if "blur" in use else arb(0)
    steps = [*steps, (Normal(blur * blur), 1)] if "blur" in use else steps
    step = 2 * arb.pi() / length
    values = product(steps, use, c, step, count)
    beyond = arb(1)
    for index, (pair, times) in enumerate(steps):
        beyond *= pair.beyond(c, step * count, part(use, index)) ** times
    charge(4 * count)
    shifts = [acb(c, n * step) for n in range(count + 1)]
    weighted = [value / (z * (z + 1)) for value, z in zip(values, shifts, strict=True)]
    weighted[0] /= 2
    alias = images(steps, use, c, length)
    lost = tail((moved - blur * blur / 2) / blur) if "blur" in use else arb(0)

    def read(x: arb) -> Enclosure:
        charge(3 * count)
        turn = -x * step
        total = sum(((w * acb(0, turn * n).exp()).real for n, w in enumerate(weighted)), arb(0))
        scale = (-c * x).exp()
        return total * step / arb.pi() * scale, beyond * scale / (arb.pi() * step * count)

    def bounds(x: arb) -> Enclosure:
        at, cut = read(x)
        down, cut_down = read(x + moved) if "blur" in use else (at, cut)
        return down - cut_down - alias(x + moved) - lost, at + cut

    return bounds
