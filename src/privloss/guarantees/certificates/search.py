"""Choosing the parameters of a certificate, in floating point: any choice is sound, only the width depends on it.

The pairs are the checker's own; here they are evaluated roughly (mixtures in doubles, all others at few bits) to place
the line at the saddle, the images far enough apart and the cut far enough out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb, ctx
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from privloss.guarantees.certificates.checker import Mixture, Pair, Pieces, Rejected, Steps, Table, Use
from privloss.guarantees.certificates.densities import Density, Piece
from privloss.guarantees.certificates.pairs import DiscreteNormal
from privloss.guarantees.certificates.samplers import Blend
from privloss.guarantees.certificates.sums import LaplacePair

_GOAL = 28.0  # nats by which every error stays below delta
_CHEAP, _DEAR = 60_000, 3_000  # nodes of a line that are affordable for closed forms, and for integrals
_PRODUCTS = 60_000_000  # nodes of a line times nodes of a quadrature
_RESIDUES = 80_000  # terms of a sum of residues
_BENDS = np.geomspace(1e-3, 0.93, 14) * math.pi
_ROUGH = 64  # bits
_LATTICE = 3_000_000  # nodes times places of a lattice
_DEEPEST = 4.0  # bend: e^(bend^2) times what the nodes miss must stay small
_KINDS = 16  # kinds of step that are looked at one by one
_SUMS = 4_000  # outcomes that are summed one by one rather than on a lattice
_SHARES = (1.0, 0.85, 0.7, 0.55, 0.4)  # of the saddle
_FURTHER = (1.06, 1.15, 1.3, 1.6, 2.0, 3.0, 5.0)  # c' / c


class Unaffordable(Exception):
    """Internal: this method would need too much work here."""


@dataclass(frozen=True)
class Model:
    """A rough view of one direction of a plan; of many kinds of step a few stand for all."""

    steps: Steps
    log_lost: float | None = None  # log of what thinning may leave out, if anything

    @cached_property
    def shown(self) -> list[tuple[int, int, list[int]]]:
        """(index, uses, indices it stands for)."""
        if len(self.steps) <= _KINDS:
            return [(i, times, [i]) for i, (_, times) in enumerate(self.steps)]
        with ctx.workprec(_ROUGH):
            order = sorted(range(len(self.steps)), key=lambda i: _log_mgf(self.steps[i][0], 1.0))
        groups = [list(map(int, part)) for part in np.array_split(order, _KINDS)]
        return [(g[len(g) // 2], sum(self.steps[i][1] for i in g), g) for g in groups]

    def k(self, c: float) -> float:
        """K(c), or inf where that cannot be had."""
        with ctx.workprec(_ROUGH):
            try:
                return math.fsum(times * _log_mgf(self.steps[i][0], c, self.lost(times)) for i, times, _ in self.shown)
            except (Rejected, OverflowError, ValueError):
                return math.inf

    def lost(self, times: int) -> float | None:
        return None if self.log_lost is None else self.log_lost - math.log(times * len(self.steps))

    @property
    def dear(self) -> bool:
        return any(isinstance(part, Density) for pair, _ in self.steps for part in _parts(pair))

    def saddle(self, eps: float) -> float:
        """The c that makes K(c) - c eps - log c(c+1) least."""

        def height(log_c: float) -> float:
            c = math.exp(log_c)
            value = self.k(c) - c * eps - math.log(c) - math.log1p(c)
            return value if math.isfinite(value) else 1e300

        grid = np.linspace(math.log(1e-4), math.log(1e6), 24 if self.dear else 48)
        heights = [height(x) for x in grid]
        best = int(np.argmin(heights))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        found = minimize_scalar(height, bounds=(low, high), method="bounded", options={"xatol": 1e-3})
        return float(math.exp(found.x))

    def log_beyond(self, c: float, t: float) -> tuple[float, dict[int, Use]]:
        """log of the bound on |M(c + iu)|, u >= t, and the path of every mixture."""
        total, paths = 0.0, dict[int, Use]()
        with ctx.workprec(_ROUGH):
            for i, times, group in self.shown:
                pair, path = self.steps[i][0], None
                if isinstance(pair, Mixture):
                    log, path = MixtureModel.of(pair, self.lost(times)).log_beyond(c, t)
                elif isinstance(pair, Density):
                    log, path = DensityModel.of(pair).log_beyond(c, t)
                elif isinstance(pair, Blend):
                    log, path = _blend_beyond(pair, c, t)
                else:
                    value = pair.beyond(arb(c), arb(t), {})
                    log = min(float(value.log()), _log_mgf(pair, c)) if value > 0 else -math.inf
                total += times * log
                paths.update(dict.fromkeys(group, path) if path is not None else {})
        return total, paths


def _parts(pair: Pair) -> Iterator[Pair]:
    if isinstance(pair, Blend):
        for _, inner in pair.parts:
            yield from _parts(inner)
    else:
        yield pair


def _log_mgf(pair: Pair, c: float, lost: float | None = None) -> float:
    if isinstance(pair, Blend):
        logs = [math.log(float(w)) + _log_mgf(inner, c) for w, inner in pair.parts if float(w) > 0]
        return float(np.logaddexp.reduce(logs))
    if isinstance(pair, Mixture):
        return MixtureModel.of(pair, lost).log_mgf(c)
    if isinstance(pair, Density):
        return DensityModel.of(pair).log_mgf(c)
    return float(pair.line(arb(c), arb(0), 0, {})[0].real.log())


def _blend_beyond(pair: Blend, c: float, t: float) -> tuple[float, Use]:
    """The path of the likeliest part serves all (a mixture's path means nothing to a density, and is left out)."""
    _, first = max(pair.parts, key=lambda part: float(part[0]))
    use = (DensityModel.of(first) if isinstance(first, Density) else MixtureModel.of(first)).log_beyond(c, t)[1]  # type: ignore[arg-type]
    total = -math.inf
    for w, inner in pair.parts:
        if float(w) > 0:
            same = isinstance(inner, type(first))
            log = MODELS[type(inner)].of(inner).log_beyond(c, t)[0] if same else _log_mgf(inner, c)
            total = float(np.logaddexp(total, math.log(float(w)) + log))
    return total, use


@dataclass(frozen=True)
class DensityModel:
    """Pieces in doubles, on nodes of Gauss and Legendre."""

    pair: Density

    @classmethod
    def of(cls, pair: Density) -> DensityModel:
        return cls(pair)

    def _sizes(self, c: float, t: float, bend: float, scale: float) -> float:
        """log of the sum of atoms, and of integrals of |density r^w| along bent paths."""
        logs = [math.log(max(float(p), 1e-300)) + c * float(loss) for p, loss in self.pair.atoms if float(p) > 0]
        for piece in self.pair.pieces:
            logs.append(_piece_size(piece, c, t, bend / abs(float(piece.k)), scale))
        return float(np.logaddexp.reduce(logs))

    def log_mgf(self, c: float) -> float:
        return self._sizes(c, 0.0, 0.0, 1.0)

    def log_beyond(self, c: float, t: float) -> tuple[float, Use]:
        best: tuple[float, Use] = (math.inf, {})
        for bend in _PATHS:
            for scale in _SCALES:
                log = self._sizes(c, t, bend, scale)
                if log < best[0]:
                    best = log, {"bend": bend, "scale": scale}
        return best


_PATHS = (0.003, 0.01, 0.03, 0.1, 0.3, 0.8, 1.5, 2.4)
_SCALES = (0.5, 2.0, 8.0, 40.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_PANELS = 48


def _piece_size(piece: Piece, c: float, t: float, bend: float, scale: float) -> float:
    low, high, k, k0, rate = (float(x) for x in (piece.low, piece.high, piece.k, piece.k0, piece.rate))
    high = min(high, low + 40 + 12 * abs(k) * (c + 1)) if float(piece.log_density[2]) < 0 else high
    a0, a1, a2 = (float(x) for x in piece.log_density)
    edges = np.linspace(low, high, _PANELS + 1)
    half = 0.5 * np.diff(edges)[:, None]
    u = (edges[:-1, None] + half + half * _NODES).ravel()
    weight = (half * _WEIGHTS).ravel()
    left, right = np.exp(scale * (low - u)), np.exp(scale * (u - high))
    side = bend if (k > 0) == piece.forward else -bend
    at = u + 1j * side * (1 - left) * (1 - right)
    slope = side * scale * (left * (1 - right) - right * (1 - left))
    ratio = _log_sum([np.log1p(-rate) + 0 * at, math.log(rate) + k * at + k0])
    power = complex(c + 1, t) if piece.forward else complex(-c, -t)
    expo = (a0 + at * (a1 + at * a2) + power * ratio).real + np.log1p(slope**2 / 2) + np.log(weight)
    return float(np.logaddexp.reduce(expo))


@dataclass(frozen=True)
class MixtureModel:
    """A mixture in doubles."""

    w: np.ndarray[Any, np.dtype[np.float64]]
    a: np.ndarray[Any, np.dtype[np.float64]]
    b: np.ndarray[Any, np.dtype[np.float64]]
    thin: float | None = None

    @classmethod
    def of(cls, pair: Mixture, lost: float | None = None) -> MixtureModel:
        w, a, b = (np.array([float(t[i].mid()) for t in pair.triples]) for i in range(3))
        model = cls(w, a, b)
        return model if lost is None or model.bounded else replace(model, thin=model._thin(lost))

    def _thin(self, lost: float) -> float:
        """Where to thin so that e^lost is left out at most."""
        low, high = float(self.a.min()) - 1, float(self.a.max()) + 80
        for _ in range(60):
            middle = 0.5 * (low + high)
            rare = float(np.logaddexp.reduce(np.log(self.w) + log_ndtr((self.a - middle) / math.sqrt(2))))
            low, high = (low, middle) if rare <= lost else (middle, high)
        return high

    @property
    def reach(self) -> float:
        return float(max(np.abs(self.a).max(), np.abs(self.b).max(), 1e-300))

    @property
    def span(self) -> float:
        return float(self.a.max() - self.b.min())

    @property
    def largest(self) -> float:
        """The largest loss, if all of P is one component that Q has too; else inf."""
        shared = self.w[self.b == self.a[0]].sum()
        return -math.log(shared) if shared > 0 and bool(np.all(self.a == self.a[0])) else math.inf

    @property
    def bounded(self) -> bool:
        return self.largest < math.inf

    def _means(self, c: float) -> Any:
        return self.a if self.bounded else (c + 1) * self.a - c * self.b

    def range(self, c: float, most: float, nats: float) -> tuple[float, float]:
        """Where the nodes must lie so that what they miss at tilts c .. most is e^-nats of M."""
        means = [self._means(x) for x in (c, most)]
        if self.thin is not None:
            means = [np.append(m, 0.5 * (m.max() + self.thin)) for m in means]
        sizes = [
            x * self.largest + 0 * self.w if self.bounded else x * (x + 1) * (self.a - self.b) ** 2 / 2
            for x in (c, most)
        ]
        excess = max(
            float((np.log(self.w) + size).max()) - self.log_mgf(x) for size, x in zip(sizes, (c, most), strict=True)
        )
        room = math.sqrt(2 * (nats + max(excess, 0.0))) + 1
        low = float(min(m.min() for m in means)) - room
        if self.thin is None:
            return low, float(max(m.max() for m in means)) + room
        # the product of both densities is narrower by sqrt(2), and smaller by e^(-(mean - thin)^2/4)
        ends = [self.thin]
        for m, size, x in zip(means, sizes, (c, most), strict=True):
            left = nats + size - self.log_mgf(x) - (m[: len(size)] - self.thin) ** 2 / 4
            ends.append(float((0.5 * (m[: len(size)] + self.thin) + np.sqrt(np.maximum(left, 1.0)) + 1).max()))
        return float(min(m.min() for m in means)) - math.sqrt(2 * (nats + 1)) - 1, max(ends)

    def _logs(self, y: Any, bend: Any) -> tuple[Any, Any]:
        at = y + 1j * bend
        p = [np.log(w) + a * at - a * a / 2 for w, a in zip(self.w, self.a, strict=True)]
        q = [np.log(w) + b * at - b * b / 2 for w, b in zip(self.w, self.b, strict=True)]
        return _log_sum(p), _log_sum(q)

    def _grid(self, c: float) -> Any:
        means = self._means(c)
        low, high = float(means.min()) - 11, float(means.max()) + 11
        high = high if self.thin is None else min(high, self.thin + 12 + 0.5 * max(float(means.max()) - self.thin, 0.0))
        step = min(0.25, 0.8 / self.reach)
        if (high - low) / step > 400_000:
            raise Rejected("the tilt reaches too far")
        return np.arange(low, high, step), step

    def _kept(self, y: Any) -> Any:
        return 0.0 if self.thin is None else log_ndtr(self.thin - y)

    def log_mgf(self, c: float) -> float:
        y, step = self._grid(c)
        p, q = self._logs(y, 0.0)
        expo = -y * y / 2 + (c + 1) * p.real - c * q.real + self._kept(y)
        top = float(expo.max())
        return top + math.log(float(np.exp(expo - top).sum()) * step / math.sqrt(2 * math.pi))

    def log_beyond(self, c: float, t: float) -> tuple[float, Use]:
        """The best of a few paths x + i bend / (1 + e^(reach (onset - x)))."""
        y, step = self._grid(c)
        best: tuple[float, Use] = (math.inf, {})
        onsets = [-1e6, *np.linspace(-1.0, 1.0, 9) * 4 / self.reach + self._middle()]
        for onset in onsets:
            share = 1 / (1 + np.exp(np.clip(self.reach * (onset - y), -700, 700)))[None, :]
            bends = np.minimum(_BENDS / self.reach, _DEEPEST)
            v = bends[:, None] * share
            p, q = self._logs(y[None, :], v)
            slope = self.reach * v * (1 - share)
            expo = (v**2 - y * y) / 2 + (c + 1) * p.real - c * q.real - t * (p.imag - q.imag) + np.log1p(slope**2 / 2)
            expo = expo + (0.0 if self.thin is None else v**2 / 2 + self._kept(y))
            top = expo.max(axis=1)
            logs = top + np.log(np.exp(expo - top[:, None]).sum(axis=1) * step / math.sqrt(2 * math.pi))
            i = int(np.argmin(logs))
            if logs[i] < best[0]:
                best = float(logs[i]), {"bend": float(bends[i]), "onset": float(onset)}
        return best

    def _middle(self) -> float:
        """Where the farthest component of P outweighs the nearest: the place to bend at."""
        i, j = int(np.argmax(self.a - self.b)), int(np.argmin(np.abs(self.a - self.b)))
        far, near = (self.a[i], self.a[j]) if self.a[i] != self.a[j] else (self.b[j], self.b[i])
        return float(0.5 * (far + near) + np.log(self.w[j] / self.w[i]) / max(far - near, 1e-300))

    def use(self, c: float, most: float, t: float, nats: float, path: Use) -> Use:
        """Step and strip of the quadrature: as wide a step as the strip bound allows."""
        strips = 0.95 * math.pi / self.reach * np.linspace(0.05, 1.0, 40)
        rise = strips**2 / 2 if self.thin is None else strips**2
        cost = nats + t * strips * self.span + rise - most * np.log(np.cos(0.5 * self.reach * strips))
        steps = 2 * math.pi * strips / cost
        best = int(np.argmax(steps))
        low, high = self.range(c, most, nats)
        use: Use = {"h": float(steps[best]), "v": float(strips[best]), "from": low, **path}
        if self.thin is not None:
            use["thin"] = self.thin
        use["nodes"] = math.ceil((high - low) / use["h"]) + 2
        return use


MODELS: dict[type[Pair], Any] = {Mixture: MixtureModel, Density: DensityModel}


def _log_sum(terms: list[Any]) -> Any:
    top = np.maximum.reduce([x.real for x in terms])
    return top + np.log(sum(np.exp(x - top) for x in terms))


def _uses(model: Model, c: float, most: float, t: float, paths: dict[int, Use], nodes: int) -> dict[str, Use]:
    """The quadratures of all mixtures."""
    uses = {}
    for i, (pair, times) in enumerate(model.steps):
        lost = None if isinstance(pair, Blend) else model.lost(times)
        mixtures = [MixtureModel.of(part, lost) for part in _parts(pair) if isinstance(part, Mixture)]
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


def largest(steps: Steps, eps: float) -> Use:
    """Beyond the sum of the largest losses nothing is left."""
    return {"method": "largest"}


def chernoff(steps: Steps, eps: float) -> Use:
    """A bound that costs one value of M."""
    model = Model(steps)
    c = model.saddle(eps)
    if not math.isfinite(model.k(c)):
        raise Unaffordable
    return {"method": "chernoff", "c": c, "steps": _uses(model, c, c, 0.0, {}, 1)}


def line(steps: Steps, eps: float, log_delta: float, blur_nats: float | None = None, thin: bool = False) -> Use:
    """The line at the saddle; with `blur_nats`, blurred as little as the affordable nodes allow; with `thin`, rare large
    losses of mixtures thinned out."""
    goal = _GOAL if blur_nats is None else blur_nats
    level = log_delta - goal
    model = Model(steps, level if thin else None)
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
        count = affordable // (16 if model.dear else 2)
        short = max(excess(count), 1.0)
        t = count * step
        mu = math.sqrt(2 * short / max(t * t - c * (c + 1), 0.5 * t * t))
        use["blur"] = mu
        use["w"] = mu * math.sqrt(2 * (goal - log_delta)) + mu * mu / 2
    use["N"] = count
    use["steps"] = _uses(model, c, most, count * step, model.log_beyond(c, count * step)[1], count)
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


def lattice(steps: Steps, eps: float, log_delta: float) -> Use:
    """All losses on one lattice."""
    if not all(_has_atoms_only(pair) for pair, _ in steps):
        raise Unaffordable
    gaps = sorted({x for pair, _ in steps for x in _gaps(pair)})
    h = _common(gaps)
    if h is None:
        raise Unaffordable
    model = Model(steps)
    c, length, most = _place(model, eps, log_delta - _GOAL)
    count = max(math.ceil(length / h), 4)
    use: Use = {"method": "lattice", "c": c, "h": h, "N": count, "c'": most}
    places = sum(int(gap[-1] / h) for gap in (_gaps(pair) for pair, _ in steps) if gap)
    if count * places > _LATTICE:
        # noise of the discrete Gaussian alone tells how soon the line has died down
        with ctx.workprec(_ROUGH):
            spread = math.fsum(n * float(p.s / p.sigma) ** 2 for p, n in steps if isinstance(p, DiscreteNormal))
        height = model.k(c) - c * eps - math.log(c * h * min(c, 1.0)) - (log_delta - _GOAL)
        last = math.ceil(math.sqrt(2 * max(height, 1.0) / max(spread, 1e-300)) * length / (2 * math.pi)) + 1
        if last * places > _LATTICE or count > _CHEAP * 20:
            raise Unaffordable
        use["evaluated"] = last
    return use


def _has_atoms_only(pair: Pair) -> bool:
    return isinstance(pair, Table) and not isinstance(pair, Pieces)


def _gaps(pair: Pair) -> list[float]:
    losses = sorted(float(loss.mid()) for _, loss in pair.atoms)  # type: ignore[attr-defined]
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


def _most_from_density(pair: LaplacePair, times: int, log_delta: float) -> int:
    """How many of the losses come from the density but for a chance far below delta."""
    share = min(max(1 - float(pair.up) - float(pair.down), 1e-300), 1.0)
    for most in range(int(times * share), times):  # P[Bin(n, p) >= m] <= e^(-n KL(m/n, p)) (Chernoff)
        x = (most + 1) / times
        miss = (1 - x) * math.log((1 - x) / (1 - share)) if x < 1 else 0.0
        if times * (x * math.log(x / share) + miss) > _GOAL - log_delta:
            return max(most, 1)
    return times


def bits(steps: Steps, log_delta: float) -> int:
    """Bits besides the usual ones: sums of residues cancel, the more so the more orders they have."""
    pair, times = steps[0]
    if len(steps) > 1 or type(pair) is not LaplacePair:
        return 0
    most = _most_from_density(pair, times, log_delta)
    return 8 * most if times * most <= _RESIDUES else 0


def candidates(steps: Steps, eps: float, log_delta: float) -> Iterator[Use]:
    """Parameters worth trying, the sharpest first."""
    pair, times = steps[0]
    alone = len(steps) == 1
    if alone and times == 1 and type(pair) is Mixture:
        yield {"method": "threshold", "reach": 2 * MixtureModel.of(pair).reach + 200.0}
    if alone and type(pair) is LaplacePair:
        most = _most_from_density(pair, times, log_delta)
        if times * most <= _RESIDUES:
            yield {"method": "residues", "most": most}
    if all(type(p) is Table for p, _ in steps):
        outcomes = 1
        for p, n in steps:
            outcomes *= math.comb(n + len(p.atoms) - 1, n)  # type: ignore[attr-defined]
            if outcomes > _SUMS:
                break
        else:
            yield {"method": "sum"}
    thin = any(type(part) is Mixture for p, _ in steps for part in _parts(p))
    for make in (
        lattice,
        line,
        *((lambda *a: line(*a, thin=True), lambda *a: line(*a, blur_nats=12.0, thin=True)) if thin else ()),
        lambda *a: line(*a, blur_nats=12.0),
    ):
        try:
            yield make(steps, eps, log_delta)
        except (Unaffordable, Rejected):
            continue
    try:
        yield chernoff(steps, eps)
    except (Unaffordable, Rejected):
        return
