"""Choosing the parameters of a certificate, in floating point: any choice is sound, only the width depends on it.

The pairs are the checker's own; here they are evaluated roughly (mixtures in doubles, all others at few bits) to place
the line at the saddle, the images far enough apart and the cut far enough out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from flint import arb

from privloss.certificates.balls import Rejected, Use
from privloss.certificates.models import MixtureModel, Model, parts_of
from privloss.certificates.pairs.base import Pair, Steps
from privloss.certificates.splitting import is_hit, split

_GOAL = 28.0  # nats by which every error stays below delta
_CHEAP, _DEAR = 60_000, 3_000  # nodes of a line that are affordable for closed forms, and for integrals
_PRODUCTS = 60_000_000  # nodes of a line times nodes of a quadrature
_RESIDUES = 80_000  # terms of a sum of residues
_BLURRED = 12.0  # nats by which the errors of a blurred line stay below delta
_LATTICE = 3_000_000  # nodes times places of a lattice
_SUMS = 4_000  # outcomes that are summed one by one rather than on a lattice
_SHARES = (1.0, 0.85, 0.7, 0.55, 0.4)  # of the saddle
_SHORT, _NARROW = 40, 600  # nodes of a line, and of its quadratures, that cost less than a split
_CHERNOFF = np.array([1.0, 3.0, 10.0, 30.0, 100.0, 300.0])  # tilts c eps
_FURTHER = (1.06, 1.15, 1.3, 1.6, 2.0, 3.0, 5.0)  # c' / c


class Unaffordable(Exception):
    """Internal: this method would need too much work here."""


def _uses(model: Model, c: float, most: float, t: float, paths: dict[int, Use], nodes: int) -> dict[str, Use]:
    """The quadratures of all mixtures."""
    uses = {}
    for i, (pair, times) in enumerate(model.steps):
        lost = None if pair.parts else model.lost(times)
        mixtures = [MixtureModel.of(part, lost) for part in parts_of(pair) if part.triples]
        if mixtures:
            worst = max(mixtures, key=lambda m: m.reach)
            use = worst.use(c, most, t, 36 + math.log(times), paths.get(i, {}))
            if len(mixtures) > 1:
                ranges = [m.range(c, most, 36 + math.log(times)) for m in mixtures]
                use["from"] = min(r[0] for r in ranges)
                use["nodes"] = math.ceil((max(r[1] for r in ranges) - use["from"]) / use["h"]) + 2
            if use["nodes"] * nodes > _PRODUCTS:
                raise Unaffordable
            uses[str(i)] = use
        elif i in paths:
            uses[str(i)] = paths[i]
    return uses


def largest(steps: Steps, eps: float, log_delta: float) -> Use:
    """Beyond the sum of the largest losses nothing is left."""
    return {"method": "largest"}


def chernoff(steps: Steps, eps: float, log_delta: float) -> Use:
    """A bound that costs one value of M: at the saddle, or at a smaller tilt if that is enough for delta."""
    model = Model(steps)
    for c in _CHERNOFF / max(eps, 1e-9):
        if model.k(c) - c * eps + c * math.log(c / (c + 1)) - math.log1p(c) < log_delta - 0.1:
            break
    else:
        c = model.saddle(eps)
    if not math.isfinite(model.k(c)):
        raise Unaffordable
    c = float(c)
    return {"method": "chernoff", "c": c, "steps": _uses(model, c, c, 0.0, {}, 1)}


def line(model: Model, eps: float, log_delta: float, blur_nats: float | None = None) -> Use:
    """The line at the saddle; with `blur_nats`, blurred as little as the affordable nodes allow."""
    goal = _GOAL if blur_nats is None else blur_nats
    level = log_delta - goal
    c, length, most = _place(model, eps, level)
    step = 2 * math.pi / length
    affordable = _DEAR if model.dear else _CHEAP

    def excess(n: float, extra: float = 0.0) -> float:
        t = n * step
        return model.log_beyond(c, t)[0] + extra - c * eps - math.log(math.pi * t) - level

    use: Use = {"method": "line", "c": c, "L": length, "c'": most}
    if blur_nats is None:
        low, high = 1, 4
        while excess(high) > 0:
            low, high = high, high * 2
            if high > affordable:
                raise Unaffordable
        while high - low > max(1, low // 40):
            middle = (low + high) // 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        count = high
    else:
        count = affordable // (16 if model.dear else 6)
        short = max(excess(count), 1.0)
        t = count * step
        mu = math.sqrt(2 * short / max(t * t - c * (c + 1), 0.5 * t * t))
        use["blur"] = mu
        use["w"] = mu * math.sqrt(2 * (goal - log_delta)) + mu * mu / 2
    use["N"] = count
    use["steps"] = _uses(model, c, most, count * step, model.log_beyond(c, count * step)[1], count)
    return use


def _short_line(model: Model, eps: float, log_delta: float) -> Use:
    """The line, if it takes few nodes."""
    use = line(model, eps, log_delta)
    nodes = max((part.get("nodes", 0) for part in use["steps"].values()), default=0)
    if not nodes or use["N"] > _SHORT or nodes > _NARROW:
        raise Unaffordable
    return use


def _length(model: Model, c: float, eps: float, level: float) -> tuple[float, float]:
    """The least period whose images stay below e^level, and the tilt that shows it of those to the right."""
    left = -level / c
    found = (math.inf, c)
    for factor in _FURTHER:
        most = c * factor
        log_kappa = most * math.log(most / (most + 1)) - math.log1p(most)
        need = (model.k(most) - most * eps + log_kappa - level) / (most - c)
        found = min(found, (need, most))
    if not math.isfinite(found[0]):
        raise Unaffordable
    return max(left, found[0], 1e-9), found[1]


def _place(model: Model, eps: float, level: float) -> tuple[float, float, float]:
    """c, period and c': at the saddle or somewhat below it, where the images need the shortest period."""
    saddle = model.saddle(eps)
    if not math.isfinite(model.k(saddle)):
        raise Unaffordable
    places = [(_length(model, saddle * share, eps, level), saddle * share) for share in _SHARES]
    (length, most), c = min(places)
    return c, length, most


def lattice(model: Model, eps: float, log_delta: float) -> Use:
    """All losses on one lattice."""
    steps = model.steps
    if not all(pair.atoms_only for pair, _ in steps):
        raise Unaffordable
    gaps = sorted({x for pair, _ in steps for x in _gaps(pair)})
    h = _common(gaps)
    if h is None:
        raise Unaffordable
    c, length, most = _place(model, eps, log_delta - _GOAL)
    count = max(math.ceil(length / h), 4)
    use: Use = {"method": "lattice", "c": c, "h": h, "N": count, "c'": most}
    places = sum(int(gap[-1] / h) for gap in (_gaps(pair) for pair, _ in steps) if gap)
    if count * places > _LATTICE:
        # noise of the discrete Gaussian alone tells how soon the line has died down
        spread = math.fsum(n * float(p.mu_squared) for p, n in steps)
        height = model.k(c) - c * eps - math.log(c * h * min(c, 1.0)) - (log_delta - _GOAL)
        last = math.ceil(math.sqrt(2 * max(height, 1.0) / max(spread, 1e-300)) * length / (2 * math.pi)) + 1
        if last * places > _LATTICE or count > _CHEAP * 20:
            raise Unaffordable
        use["evaluated"] = last
    return use


def _gaps(pair: Pair) -> list[float]:
    losses = sorted(float(loss.mid()) for _, loss in pair.atoms)
    return [x - losses[0] for x in losses[1:] if x - losses[0] > 1e-12]


def _common(gaps: list[float]) -> float | None:
    """A number of which all gaps are multiples, up to rounding."""
    if not gaps:
        return 1.0
    for divisor in range(1, 61):
        h = gaps[0] / divisor
        if all(abs(g / h - round(g / h)) < 1e-9 * max(1.0, g / h) for g in gaps):
            top = max(gaps)  # the largest gap tells the spacing best
            return top / round(top / h)
    return None


def _most_from_density(laplace: tuple[arb, arb, arb], times: int, log_delta: float) -> int:
    """How many of the losses come from the density but for a chance far below delta."""
    e, up = float(laplace[0]), float(laplace[1])
    share = min(max(1 - up - up * math.exp(-e), 1e-300), 1.0)
    for most in range(int(times * share), times):  # P[Bin(n, p) >= m] <= e^(-n KL(m/n, p)) (Chernoff)
        x = (most + 1) / times
        miss = (1 - x) * math.log((1 - x) / (1 - share)) if x < 1 else 0.0
        if times * (x * math.log(x / share) + miss) > _GOAL - log_delta:
            return max(most, 1)
    return times


def _outcomes(steps: Steps) -> float:
    """How many outcomes a plan has, told apart by counts."""
    total = 1
    for pair, times in steps:
        if not pair.atoms_only:
            return math.inf
        total *= math.comb(times + len(pair.atoms) - 1, times)
        if total > 100 * _SUMS:
            return math.inf
    return total


def bits(steps: Steps, log_delta: float) -> int:
    """Bits besides the usual ones: sums of residues cancel, the more so the more orders they have."""
    pair, times = steps[0]
    if len(steps) > 1 or pair.laplace is None:
        return 0
    most = _most_from_density(pair.laplace, times, log_delta)
    return 8 * most if times * most <= _RESIDUES else 0


def _makers(steps: Steps, eps: float, log_delta: float, few: bool) -> list[Callable[[], Use]]:
    """Lattices and lines, the sharpest first; `few` outcomes may be summed, if need be."""
    plain, thinned = Model(steps), Model(steps, log_delta - _GOAL)
    makers: list[Callable[[], Use]] = [partial(lattice, plain, eps, log_delta)]
    if few:
        makers.append(lambda: {"method": "sum"})
    if all(is_hit(p.triples) for p, _ in steps):
        makers += [partial(_short_line, plain, eps, log_delta), partial(split, steps, eps, log_delta)]
    makers.append(partial(line, plain, eps, log_delta))
    if any(part.triples for p, _ in steps for part in parts_of(p)):  # rare large losses may be thinned out
        makers += [partial(line, thinned, eps, log_delta), partial(line, thinned, eps, log_delta, _BLURRED)]
    makers.append(partial(line, plain, eps, log_delta, _BLURRED))
    return makers


def candidates(steps: Steps, eps: float, log_delta: float) -> Iterator[Use]:
    """Parameters worth trying, the sharpest first."""
    pair, times = steps[0]
    alone = len(steps) == 1
    if alone and times == 1 and pair.triples:
        yield {"method": "threshold", "reach": 2 * MixtureModel.of(pair).reach + 200.0}
    if alone and pair.laplace is not None:
        most = _most_from_density(pair.laplace, times, log_delta)
        if times * most <= _RESIDUES:
            yield {"method": "residues", "most": most}
    outcomes = _outcomes(steps)
    if outcomes <= _SUMS:
        yield {"method": "sum"}
    for make in _makers(steps, eps, log_delta, _SUMS < outcomes <= 10 * _SUMS):
        try:
            yield make()
        except (Unaffordable, Rejected):
            continue
    try:
        yield chernoff(steps, eps, -math.inf)
    except (Unaffordable, Rejected):
        return
