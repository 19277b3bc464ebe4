"""Rough views of the checker's pairs, in doubles or few bits: for choosing parameters, never for a bound."""

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

from privloss.certificates.balls import Rejected, Use
from privloss.certificates.pairs.base import Pair, Steps
from privloss.certificates.pairs.piece import Piece

_BENDS = np.geomspace(1e-3, 0.93, 14) * math.pi
_DEEPEST = 4.0  # bend: e^(bend^2) times what the nodes miss must stay small
_PATHS = (0.003, 0.01, 0.03, 0.1, 0.3, 0.8, 1.5, 2.4)  # bends of densities
_SCALES = (0.5, 2.0, 8.0, 40.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)
_PANELS = 48
_KINDS = 16  # kinds of step that are looked at one by one
ROUGH = 64  # bits


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
        with ctx.workprec(ROUGH):
            order = sorted(range(len(self.steps)), key=lambda i: _log_mgf(self.steps[i][0], 1.0))
        groups = [list(map(int, part)) for part in np.array_split(order, _KINDS)]
        return [(g[len(g) // 2], sum(self.steps[i][1] for i in g), g) for g in groups]

    def k(self, c: float) -> float:
        """K(c), or inf where that cannot be had."""
        with ctx.workprec(ROUGH):
            try:
                return math.fsum(times * _log_mgf(self.steps[i][0], c, self.lost(times)) for i, times, _ in self.shown)
            except (Rejected, OverflowError, ValueError):
                return math.inf

    def lost(self, times: int) -> float | None:
        return None if self.log_lost is None else self.log_lost - math.log(times * len(self.steps))

    @property
    def dear(self) -> bool:
        return any(part.pieces for pair, _ in self.steps for part in parts_of(pair))

    @cached_property
    def _saddles(self) -> dict[float, float]:
        return {}

    def saddle(self, eps: float) -> float:
        """The c that makes K(c) - c eps - log c(c+1), which has one minimum, least."""
        if eps not in self._saddles:
            self._saddles[eps] = self._find_saddle(eps)
        return self._saddles[eps]

    def _find_saddle(self, eps: float) -> float:

        def height(log_c: float) -> float:
            c = math.exp(log_c)
            value = self.k(c) - c * eps - math.log(c) - math.log1p(c)
            return value if math.isfinite(value) else 1e300

        grid = np.linspace(math.log(1e-4), math.log(1e6), 15)
        heights = [height(x) for x in grid]
        best = int(np.argmin(heights))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        found = minimize_scalar(height, bounds=(low, high), method="bounded", options={"xatol": 1e-3})
        return float(math.exp(found.x))

    def log_beyond(self, c: float, t: float) -> tuple[float, dict[int, Use]]:
        """log of the bound on |M(c + iu)|, u >= t, and the path of every mixture."""
        total, paths = 0.0, dict[int, Use]()
        with ctx.workprec(ROUGH):
            for i, times, group in self.shown:
                pair, path = self.steps[i][0], None
                model = model_of(pair, self.lost(times))
                if model is not None:
                    log, path = model.log_beyond(c, t)
                elif pair.parts:
                    log, path = _blend_beyond(pair, c, t)
                else:
                    value = pair.beyond(arb(c), arb(t), {})
                    log = min(float(value.log()), _log_mgf(pair, c)) if value > 0 else -math.inf
                total += times * log
                paths.update(dict.fromkeys(group, path) if path is not None else {})
        return total, paths


def parts_of(pair: Pair) -> Iterator[Pair]:
    """The pair, or all it is a blend of."""
    for _, inner in pair.parts:
        yield from parts_of(inner)
    if not pair.parts:
        yield pair


def _log_mgf(pair: Pair, c: float, lost: float | None = None) -> float:
    if pair.parts:
        logs = [math.log(float(w)) + _log_mgf(inner, c) for w, inner in pair.parts if float(w) > 0]
        return float(np.logaddexp.reduce(logs))
    model = model_of(pair, lost)
    return model.log_mgf(c) if model is not None else float(pair.line(arb(c), arb(0), 0, {})[0].real.log())


def _blend_beyond(pair: Pair, c: float, t: float) -> tuple[float, Use]:
    """The path of the likeliest mixture serves all mixtures, that of the likeliest density all densities."""
    use: Use = {}
    total = -math.inf
    for w, inner in sorted(pair.parts, key=lambda part: -float(part[0])):
        model = model_of(inner)
        if float(w) > 0 and model is not None:  # blends are made of mixtures and densities
            log, path = model.log_beyond(c, t)
            total, use = float(np.logaddexp(total, math.log(float(w)) + log)), {**path, **use}
    return total, use


@dataclass(frozen=True)
class DensityModel:
    """Pieces in doubles, on nodes of Gauss and Legendre."""

    pair: Pair

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
                    best = log, {"turn": bend, "scale": scale}
        return best


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
    def of(cls, pair: Pair, lost: float | None = None) -> MixtureModel:
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


def model_of(pair: Pair, lost: float | None = None) -> MixtureModel | DensityModel | None:
    """A view of a mixture (thinned so that e^lost is left out, if it may be) or of integrals; None of others."""
    if pair.triples:
        return MixtureModel.of(pair, lost)
    return DensityModel(pair) if pair.pieces else None


def _log_sum(terms: list[Any]) -> Any:
    top = np.maximum.reduce([x.real for x in terms])
    return top + np.log(sum(np.exp(x - top) for x in terms))
