"""Where to put the quadrature nodes for a Gaussian mixture, with a proof of what is lost.

Notation: Q = N(0, sigma^2), r = dP/dQ = 1 - q + q e^s with s = (2y - 1)/(2 sigma^2), x = r - 1. The exponent is
w = z + 1 (P against Q) or w = -z (Q against P); in both cases w(w-1) = z(z+1), and since E_Q[x] = 0

    M(z) - 1 = E_Q[ r^w - 1 - w x ] = integral of f,     f = phi (r^w - 1 - w x).

Taylor's formula gives r^w - 1 - w x = w(w-1) x^2 * integral_0^1 (1-u) (1+ux)^(w-2) du. On the lines Im y = +-v,
theta = v/sigma^2 <= pi/2, the point 1 + ux lies on the segment from 1 to r(y+iv), so |arg| <= theta and

    |f(y+iv)| <= 1/2 |z(z+1)| e^(v^2/2sigma^2 + |t| theta) * phi(y) * g(y),      g = X * S,
    X = q^2 (e^(2s) + 1) >= |x(y+iv)|^2                                         (cos theta >= 0),
    S = 1 + r^(c-1)                              P against Q, c >= 1: |1+ux| <= max(1, r),
    S = 4 r^(c-1) (1 + max(log r, 0))            P against Q, c < 1: |1+ux| >= (1 + u x(y)) cos(theta/2), and
                                                 integral_0^1 (1+ux)^(c-1) du <= r^(c-1) r log(r)/x for x > 0,
    S = 5 (1/r + r^-(c+2)) cos(theta/2)^-(c+2)   Q against P: the same lower bound on |1+ux|, and for x > 0
                                                 integral_0^1 (1+ux)^-(c+2) du <= min(1, 1/((c+1)x)) <= 2.5/r.

So one majorant phi*g bounds the strip integral (trapezoid error 2 C / (e^(2 pi v/h) - 1)) and the nodes left out.
The mean E[Z] enters as a number, so the nodes really integrate f less z times the integrand of the mean, which is the
derivative of f at z = 0. Its majorant is that of c = 0 with 1/2 |z| in front, and S(c=0) <= 4/(1-q) S(c) in all three
cases; so everything below is multiplied by 1 + 4/(1-q).

*Trimmed rows* integrate over y <= b only: M_b = 1 + integral_{y<=b} f - Q[y > b] - w (P[y > b] - Q[y > b]),
where the last two terms are probabilities of normal laws. If b lies half-way between nodes, the kernel of the
trapezoid rule is 1/(1 + e^(2 pi u/h)) on the side Re y = b. There |f(b+iu)| <= |f(b)| e^(g u/v) with g what penalty
and height make of f at u = v (a quadratic lies below its chord), so the side adds at most 2 v/(2 pi v/h - g) times what
bounds f at b (`Edge`); for lifted nodes both are counted from their own line, and the way down to b adds v.

The majorant is integrated from above on a fixed set of cells: log(phi g) has second derivative >= -kappa, hence on a
cell of
width D it is at most its larger end value + kappa D^2/8; alternatively each factor is taken at its worst end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from privloss.numerics.contour.transform import TooExpensive
from privloss.numerics.floats import Real

MAX_NODES = 40_000  # per row; 3 arrays of doubles each
_LEFT_CELLS, _RIGHT_CELLS = 40, 96
_LEFTWARD = np.linspace(-1.0, 0.0, _LEFT_CELLS + 1)
_RIGHTWARD = np.linspace(0.0, 1.0, _RIGHT_CELLS + 1)
_FAR = 16.0  # cells reach this many sigma beyond the last place where the majorant can grow
_LOG_2, _LOG_SQRT_2PI = math.log(2.0), 0.5 * math.log(2 * math.pi)
_SAFETY = 1e-9  # nats, for rounding


@dataclass(frozen=True)
class Members:
    """One row per (rate, sigma, c); `flipped` means Q against P."""

    q: Real
    sigma: Real
    c: Real
    flipped: bool
    trim: Real | None = None  # M is the integral over y <= trim only, for every row (P against Q)
    log_beyond: Real | None = None  # log of upper bounds on P[y > trim]

    def log_ratio(self, y: Real) -> tuple[Real, Real, Real]:
        """s, x and log r at y, accurate for small losses and free of overflow (x may be inf where s > 700)."""
        q, sigma = self.q[:, None], self.sigma[:, None]
        s = (y - 0.5) / (sigma * sigma)
        if s.max() <= 30.0:
            x = q * np.expm1(s)
            if q.max() <= 0.5:
                return s, x, np.log1p(x)
            # 1 - q is exact here, and 1 + x would cancel where x is near -1
            return s, x, np.where(x < -0.5, np.log((1 - q) + q * np.exp(s)), np.log1p(np.maximum(x, -0.5)))
        with np.errstate(over="ignore", invalid="ignore"):
            x = q * np.expm1(s)
            # far right: log(1-q+q e^s) = s + log q + log1p((1-q)/q e^-s), no overflow
            far = s + np.log(q) + np.log1p((1 - q) / q * np.exp(-np.maximum(s, 0.0)))
            close = np.where(s > 30.0, 0.0, x)
            close = np.where(
                close < -0.5, np.log((1 - q) + q * np.exp(np.minimum(s, 0.0))), np.log1p(np.maximum(close, -0.5))
            )
            log_r = np.where(s > 30.0, far, close)
        return s, x, log_r


@dataclass(frozen=True)
class Grid:
    """Nodes start + j * step, j < size, per row; the error of M at height t is
    1/2 |z(z+1)| (strip e^(slope t) + tail)."""

    start: Real
    step: Real
    size: int
    shift: Real  # the line Im y = shift the nodes lie on (0: the real axis)
    log_strip: Real
    slope: Real
    log_tail: Real
    edge: Edge | None = None  # of trimmed rows, whose error it adds

    def part(self, at: slice) -> Grid:
        """The grid of some of the rows."""
        shift, strip, slope, tail = self.shift[at], self.log_strip[at], self.slope[at], self.log_tail[at]
        edge = None if self.edge is None else Edge(self.edge.log_side[at], self.edge.log_phi[at], self.edge.log_r[at])
        return Grid(self.start[at], self.step[at], self.size, shift, strip, slope, tail, edge)

    def log_error(self, rows: Members, t: Real) -> Real:
        """log of the bound on |M_computed - M|, shape (rows, len(t)), rounding excluded."""
        c = rows.c[:, None]
        half_zz1 = np.log(0.5) + 0.5 * (np.log(np.maximum(c * c + t * t, 1e-300)) + np.log((c + 1) ** 2 + t * t))
        found = half_zz1 + np.logaddexp(self.log_strip[:, None] + self.slope[:, None] * t, self.log_tail[:, None])
        if self.edge is not None:
            found = np.logaddexp(found, self.edge.log_error(rows, t, half_zz1))
        return np.asarray(found)


@dataclass(frozen=True)
class Edge:
    """What the side Re y = b of trimmed rows adds, in two ways: by the majorant there; and by |f| itself, with the
    integrand of the mean, at most phi (r^(c+1) + (1 + |z|) r (7 + |log r|)) since |x| <= 2 r for b >= 1/2."""

    log_side: Real  # of the majorant, without its 1/2 |z(z+1)|
    log_phi: Real  # of phi, inf below 1/2
    log_r: Real

    def log_error(self, rows: Members, t: Real, half_zz1: Real) -> Real:
        c, log_r = rows.c[:, None], self.log_r[:, None]
        size = np.maximum(log_r, -np.log1p(-rows.q)[:, None])
        low = np.log1p(np.hypot(c, t)) + log_r + np.log(7 + size)
        direct = self.log_phi[:, None] + np.logaddexp((c + 1) * log_r, low)
        return np.asarray(np.minimum(half_zz1 + self.log_side[:, None], direct))

    def log_mean_error(self, rows: Members) -> Real:
        """The same for the mean, whose integrand is at most phi r (4 + |log r|) in both directions."""
        direct = self.log_phi + self.log_r + np.log(4 + np.maximum(self.log_r, -np.log1p(-rows.q)))
        return np.asarray(np.minimum(np.log(0.5) + self.log_side, direct))


def _edges(rows: Members) -> Real:
    """Cell edges in units of sigma, shape (rows, cells + 1); 0 is always an edge."""
    q, sigma, c = rows.q, rows.sigma, rows.c
    left = _FAR + (c + 2) * q / sigma if rows.flipped else np.full_like(q, _FAR)
    peak = np.full_like(q, 2.0) if rows.flipped else np.maximum(c + 1, 3.0)
    right = _FAR + peak / sigma
    if rows.trim is not None:
        right = np.minimum(right, rows.trim / sigma)
    lefts, linear = left[:, None] * _LEFTWARD, _RIGHTWARD
    if right.max() <= 48.0:
        return np.concatenate([lefts, right[:, None] * linear[1:]], axis=1)
    near = np.minimum(right, 48.0)[:, None] * np.minimum(linear * 4 / 3, 1.0)
    far = 48.0 * np.maximum(right / 48.0, 1.0)[:, None] ** np.maximum(4 * linear - 3, 0.0)
    rights = np.where(right[:, None] <= 48.0, right[:, None] * linear, np.where(linear <= 0.75, near, far))
    return np.concatenate([lefts, rights[:, 1:]], axis=1)


@dataclass(frozen=True)
class Majorant:
    """Upper bounds on the integral of phi*g over cells; the two end cells reach to infinity."""

    rows: Members
    y: Real  # edges
    masses: Real  # (rows, edges + 1), in units of e^top
    top: Real
    log_side: Real  # log(phi g) at the last edge
    crowd: float  # nodes of step <= sigma in a cell, times step, are at most this many widths

    def grid(self, t_max: float, log_goal: Real, lifted: bool) -> Grid:
        """A grid whose error in M is about exp(log_goal) (absolute, or relative where M is large) up to t_max."""
        return _choose_grid(self, t_max, log_goal, lifted)


def _bend(s: Real, log_r: Real, q: Real, sigma: Real) -> tuple[Real, Real]:
    """At the right edge of each cell p = q e^s / r, increasing; on each cell the largest (log r)'' = p(1-p)/sigma^4."""
    hit = np.exp(np.minimum(s + np.log(q) - log_r, 0.0))
    least, most = hit[:, :-1], hit[:, 1:]
    spread = np.where(most < 0.5, most * (1 - most), np.where(least > 0.5, least * (1 - least), 0.25))
    return most, spread / sigma**4


def majorant(rows: Members) -> Majorant:
    q, sigma, c = rows.q[:, None], rows.sigma[:, None], rows.c[:, None]
    edges = _edges(rows)
    y = edges * sigma
    s, _, log_r = rows.log_ratio(y)
    log_phi = -0.5 * edges**2 - np.log(sigma) - _LOG_SQRT_2PI
    log_x = 2 * np.log(q) + np.logaddexp(2 * s, 0.0)
    if rows.flipped:
        _, bend = _bend(s, log_r, q, sigma)
        log_s = np.log(5.0) - log_r + np.logaddexp(0.0, -(c + 1) * log_r)
        kappa = 1 / sigma**2 + (c + 2) * bend
        worst_s = log_s[:, :-1]
    elif np.all(rows.c >= 1):
        log_s = np.logaddexp(0.0, (c - 1) * log_r)
        kappa, worst_s = 1 / sigma**2, log_s[:, 1:]
    else:
        most, bend = _bend(s, log_r, q, sigma)
        positive = np.maximum(log_r, 0.0)
        high = np.logaddexp(0.0, np.maximum(c - 1, 0.0) * log_r)
        low = np.log(4.0) + np.minimum(c - 1, 0.0) * log_r + np.log1p(positive)
        log_s = np.where(c >= 1, high, low)
        slope = most / sigma**2 / (1 + positive[:, :-1])
        kappa = 1 / sigma**2 + np.where(c >= 1, 0.0, (1 - c) * bend + slope**2)
        worst_low = np.log(4.0) + np.minimum(c - 1, 0.0) * log_r[:, :-1] + np.log1p(positive[:, 1:])
        worst_s = np.where(c >= 1, high[:, 1:], worst_low)
    log_phi = log_phi + np.log1p(4 / (1 - q))  # room for the mean
    whole = log_phi + log_x + log_s
    width = np.diff(y, axis=1)
    smooth = np.maximum(whole[:, 1:], whole[:, :-1]) + kappa * width**2 / 8
    factors = np.maximum(log_phi[:, 1:], log_phi[:, :-1]) + log_x[:, 1:] + worst_s
    inner = np.minimum(smooth, factors) + np.log(width)
    # Beyond the last edges log(phi g) falls at least at half the rate FAR/sigma, so the rest is a geometric tail.
    ends = np.log(2 * sigma / _FAR)
    beyond = whole[:, -1:] + ends
    if rows.trim is not None:
        beyond = np.where(y[:, -1:] >= rows.trim[:, None] * (1 - 1e-12), -np.inf, beyond)
    cells = np.concatenate([whole[:, :1] + ends, inner, beyond], axis=1)
    crowd = float(1 + np.max(sigma / width.min(axis=1, keepdims=True)) + _FAR)
    top = cells.max(axis=1, keepdims=True)
    return Majorant(rows, y, np.exp(cells - top), top[:, 0], whole[:, -1], crowd)


def _choose_grid(over: Majorant, t_max: float, log_goal: Real, lifted: bool) -> Grid:
    """`lifted` puts the nodes on Im y = v > 0, where e^(-t arg r) only shrinks: then the strip bound does not grow with
    t and the number of nodes does not either, at the price of complex arithmetic.
    """
    rows, y, masses, top = over.rows, over.y, over.masses, over.top
    sigma, c = rows.sigma, rows.c
    log_all = np.log(masses.sum(axis=1)) + top
    if t_max == 0 and not np.any(c):  # the derivative at z = 0, for the mean: 1/2 |z(z+1)| / |z|
        half_zz1 = np.full_like(c, np.log(0.5))
        excess = half_zz1 + log_all
    else:
        half_zz1 = np.log(0.5) + 0.5 * (np.log(np.maximum(c**2 + t_max**2, 1e-300)) + np.log((c + 1) ** 2 + t_max**2))
        # M(c) is about 1 + c(c+1)/2 * integral; where that is large, the error may be too (7 nats of caution).
        excess = np.log(np.maximum(0.5 * np.abs(c) * (c + 1), 1e-300)) + log_all
    # The leading digits of M - 1 are always worth having: searches and ranges rely on it.
    goal = np.minimum(log_goal + np.maximum(0.0, excess - 7.0), excess + np.log(1e-8))

    need = np.maximum(half_zz1 + log_all - goal, 5.0)
    theta, penalty, on_nodes = strip(rows, need, lifted)
    v = theta * sigma**2
    crowding = np.log(over.crowd)
    allowed = np.exp(np.minimum(goal - half_zz1 - np.log(2.0) - crowding - top - on_nodes, 700.0))[:, None]
    from_left = np.cumsum(masses, axis=1)
    from_right = np.cumsum(masses[:, ::-1], axis=1)
    first = np.clip((from_left <= allowed).sum(axis=1) - 1, 0, y.shape[1] - 2)  # hardly any tilt: all may be lost
    last = y.shape[1] - 1 - np.maximum((from_right <= allowed).sum(axis=1) - 1, 0)
    last = np.maximum(last, first + 1)
    index = np.arange(len(sigma))
    lost = from_left[index, first] + from_right[index, y.shape[1] - 1 - last]
    low, high = y[index, first], y[index, last]

    # nodes on a lifted line carry its penalty
    log_tail = np.log(np.maximum(lost, 1e-300)) + crowding + top + on_nodes
    grid = laid(rows, (low, high), (theta, penalty), t_max, need, log_all, log_tail, lifted)
    if rows.trim is None:
        return grid
    s, _, log_r = rows.log_ratio(rows.trim[:, None])
    falls = 2 * np.pi * v / grid.step - penalty - (0.0 if lifted else t_max) * theta  # at least `need`
    way = on_nodes + np.log(2 * v / falls + (v if lifted else 0.0)) + _SAFETY
    log_phi = -0.5 * (rows.trim / sigma) ** 2 - np.log(sigma) - _LOG_SQRT_2PI
    return replace(grid, edge=Edge(over.log_side + way, np.where(s[:, 0] >= 0, log_phi + way, np.inf), log_r[:, 0]))


def laid(
    rows: Members,
    ends: tuple[Real, Real],
    angles: tuple[Real, Real],
    t_max: float,
    need: Real,
    log_all: Real,
    log_tail: Real,
    lifted: bool,
) -> Grid:
    """Nodes between the ends that miss the integral of the majorant, at most e^log_all, by about e^-need of it up to
    t_max: `angles` are the angle of the strip and the log of what its lines cost."""
    (theta, penalty), v = angles, angles[0] * rows.sigma**2
    growth = 0.0 if lifted else t_max
    step = np.minimum(2 * np.pi * v / (need + penalty + growth * theta), rows.sigma)
    step, size = _align(rows, *ends, step)
    exponent = 2 * np.pi * v / step
    return Grid(
        start=ends[0],
        step=step,
        size=size,
        shift=v if lifted else np.zeros_like(v),
        log_strip=_LOG_2 + log_all + penalty - exponent - np.log(-np.expm1(-exponent)),
        slope=np.zeros_like(theta) if lifted else theta,
        log_tail=log_tail,
    )


def strip(rows: Members, need: Real, lifted: bool) -> tuple[Real, Real, Real]:
    """The angle theta = v/sigma^2 of the strip, and the logs of what its lines and the nodes on them cost."""
    sigma, c = rows.sigma, rows.c
    bend = (c + 2) / 8 if rows.flipped else np.zeros_like(c)
    if lifted:
        # Lines Im y = 0 and 2v around Im y = v: penalty (2v)^2/2sigma^2; v <= sigma keeps |phi(y+iv)| moderate.
        theta = np.minimum(np.minimum(np.pi / 4, 1 / sigma), np.sqrt(need / (2 * sigma**2 + 4 * bend)))
        penalty = 2 * theta**2 * sigma**2
        on_nodes = 0.5 * theta**2 * sigma**2
        widest = 2 * theta
    else:
        theta = np.minimum(np.pi / 2, np.sqrt(need / (0.5 * sigma**2 + bend)))
        penalty = 0.5 * theta**2 * sigma**2
        on_nodes = np.zeros_like(theta)
        widest = theta
    if rows.flipped:
        penalty = penalty - (c + 2) * np.log(np.cos(widest / 2))
        on_nodes = on_nodes - (c + 2) * np.log(np.cos(theta / 2)) if lifted else on_nodes
    return theta, penalty, on_nodes


def _align(rows: Members, low: Real, high: Real, step: Real) -> tuple[Real, int]:
    """Steps at most `step` for a common number of nodes from `low` on; a trim lies half-way between two nodes."""
    if rows.trim is None:
        size = int(np.max(np.ceil((high - low) / step))) + 1
        _afford(size)
        return (high - low) / (size - 1), size
    span = rows.trim - low
    count = np.maximum(np.ceil(span / step - 0.5), 1.0)
    size = int(np.max(np.minimum(count, np.ceil((high - low) * (count + 0.5) / span)))) + 1
    _afford(size)
    return span / (np.maximum(count, size - 1) + 0.5), size


def _afford(size: int) -> None:
    if size > MAX_NODES:
        raise TooExpensive(f"{size} quadrature nodes")


def quick_range(rows: Members) -> tuple[Real, Real]:
    """A range of y that holds the tilted mass to many digits: for searches, and where any range is sound."""
    q, sigma, c = rows.q, rows.sigma, rows.c
    if rows.flipped:
        return -(c * q + 9 * sigma), 3 + 9 * sigma
    y = c + 1
    for _ in range(3 if y.max() > 3 else 0):  # towards the largest solution of y = (c+1) p(y), approached from above
        s = (y - 0.5) / sigma**2
        y = (c + 1) / (1 + (1 - q) / q * np.exp(-np.minimum(s, 700.0)))
    high = np.maximum(y, 3.0) + 9 * sigma
    return -9 * sigma, high if rows.trim is None else np.minimum(high, rows.trim)


def quick_step(rows: Members) -> Real:
    """A step that integrates to many digits with `quick_range`."""
    return np.asarray(np.minimum(0.6 * rows.sigma, 0.3 * rows.sigma**2))
