"""Guarantees given as curves, for the checker: trade-off curves and privacy profiles become finitely many outcomes
(docs/certificates.md, section 11, (e) and (f))."""

from __future__ import annotations

import itertools
from fractions import Fraction

from flint import arb, ctx

from privloss.certificates.balls import Rejected, need, rational
from privloss.certificates.budget import charge
from privloss.certificates.pairs.base import Masses
from privloss.certificates.pairs.noise import Step
from privloss.certificates.pairs.outcomes import Outcomes

Point = tuple[Fraction, Fraction]
Line = tuple[arb, arb]  # epsilon and delta of one promise


def trade_off_rows(step: Step, adjacency: str) -> Outcomes:
    """The larger of f and its inverse (either order of the neighbours binds), in exact fractions; an edge of the
    polygon is an outcome, its height the probability under P and its width that under Q."""
    points = _larger([(Fraction(x), Fraction(y)) for x, y in zip(step["fpr"], step["fnr"], strict=True)])
    edges = [(y1 - y2, x2 - x1) for (x1, y1), (x2, y2) in itertools.pairwise(points)]
    need(all(p >= 0 for p, _ in edges) and points[0][1] <= 1, "plan: the trade-off curve must fall")
    steep = all(p1 * q2 >= p2 * q1 for (p1, q1), (p2, q2) in itertools.pairwise(edges))
    need(steep, "plan: the trade-off curve is not exactly convex, so it is no mechanism's own and")
    rows = [(rational(p), rational(q)) for p, q in edges if p > 0]
    only_q = sum((q for p, q in edges if p == 0), Fraction(0))
    text = "f-DP is dominated by the pair whose trade-off curve is f"
    return Outcomes(rows, rational(1 - points[0][1]), rational(only_q), arb(0), arb(0), text, True)


def _larger(curve: list[Point]) -> list[Point]:
    """The polygon that is the larger of a falling polygon and its inverse."""
    charge(16 * len(curve) ** 2, exact=True)
    last = next(i for i, (_, y) in enumerate(curve) if y <= 0)
    mirror = [(y, x) for x, y in reversed(curve[: last + 1])] + [(Fraction(1), Fraction(0))]
    grid = sorted({x for x, _ in curve + mirror if 0 <= x <= 1})
    both = [(x, _height(curve, x), _height(mirror, x)) for x in grid]
    for (x1, f1, g1), (x2, f2, g2) in itertools.pairwise(list(both)):
        if (f1 - g1) * (f2 - g2) < 0:
            x = x1 + (x2 - x1) * (f1 - g1) / ((f1 - g1) - (f2 - g2))
            both.append((x, _height(curve, x), _height(mirror, x)))
    return [(x, max(f, g)) for x, f, g in sorted(both)]


def _height(curve: list[Point], x: Fraction) -> Fraction:
    """The polygon at x (its highest point where it is vertical; 0 to the right, 1 to the left)."""
    if x < curve[0][0]:
        return Fraction(1)
    found = [y for a, y in curve if a == x]
    for (x1, y1), (x2, y2) in itertools.pairwise(curve):
        if x1 < x < x2:
            found.append(y1 + (y2 - y1) * (x - x1) / (x2 - x1))
    return max(found) if found else Fraction(0)


def profile_rows(step: Step, adjacency: str) -> Outcomes:
    """The largest of the curves of (e_i, d_i)-DP: from the steepest line on, each until a flatter one is higher."""
    lines = [(arb(float(e)), arb(float(d))) for e, d in zip(step["epsilons"], step["deltas"], strict=True)]
    lines = sorted(((e, d) for e, d in lines if d < 1), key=lambda line: (float(line[1]), float(line[0])))
    need(bool(lines), "plan: the profile promises nothing")
    (eps, lost), start, rows = lines[0], arb(0), list[Masses]()
    delta = lost
    while True:
        meet = (1 - delta) / (1 + eps.exp())  # with the diagonal
        nearest = _next(lines, eps, delta)
        last = nearest is None or not nearest[0] < meet
        end = meet if nearest is None or last else nearest[0]
        rows += _edge(eps, end - start)
        if nearest is None or last:
            break
        start, (eps, delta) = start.max(nearest[0]), nearest[1]
    left = abs(1 - lost - sum((p for p, _ in rows), arb(0)))  # a ball around 0: the rounding of the widths
    need(bool(left < arb(2) ** (-int(ctx.prec) // 2)), "plan: the profile's lines cannot be told apart")
    text = "(e_i, d_i)-DP for all i is dominated by the pair of the largest of their curves"
    dropped = arb(0).union(left.upper())
    return Outcomes(rows, lost, lost, dropped, dropped, text, True)


def _next(lines: list[Line], eps: arb, delta: arb) -> tuple[arb, Line] | None:
    """Where a flatter line first overtakes this one, and which; None if none is flatter."""
    charge(4 * len(lines))
    crossings = [((d - delta) / (eps.exp() - e.exp()), (e, d)) for e, d in lines if e < eps]
    nearest = min(crossings, key=lambda x: float(x[0]), default=None)
    if nearest is not None and not all(c is nearest or bool(c[0] > nearest[0]) for c in crossings):
        raise Rejected("plan: the profile's lines need more precision")
    return nearest


def _edge(eps: arb, width: arb) -> list[Masses]:
    """An edge of slope -e^eps and its mirror image; on the diagonal both have the same probabilities."""
    if not width > 0:
        return []
    same = 2 * width
    return [(eps.exp() * width, width), (width, eps.exp() * width)] if eps > 0 else [(same, same)]
