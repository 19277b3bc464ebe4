"""High-precision reference values for the composed Poisson-subsampled Gaussian mechanism, in ball arithmetic.

Setting.  Q = N(0, s^2), P = (1-q) N(0, s^2) + q N(1, s^2), r = dP/dQ.  The privacy loss of one step is log r under P
("remove") or -log r under Q ("add"); a run of T steps adds T independent copies.  For either direction
delta(eps) = E[(1 - exp(eps - Z))_+], and epsilon(delta) is the smallest eps >= 0 at which the larger of the two
directions is at most delta.

Method, T >= 3 (also valid for T = 1, 2).  With K(z) = T log E[exp(z Z_1)],

    delta(eps) = 1/(2 pi i) * integral of exp(K(z) - eps z) / (z (z + 1)) dz    over a contour crossing Re z = c > 0.

* The contour is z(u) = c + i u + a u^2.  The straight line a = 0 serves when the composed loss is spread out; the
  parabola a > 0 serves when few of the steps are sampled and exp(K) hardly decays along a line (then exp(-eps z)
  supplies the decay).  The integral over u is the trapezoid rule.
* E[exp(z Z_1)] is the trapezoid rule over the real line in x = y/s, in ball arithmetic of a precision that covers both
  the factor T and the cancellation between nodes.  On the line, r^z is a geometric sequence, so all of the values come
  from one matrix product.
* On the straight line and in the remove direction P is damped by the factor Phi(b - x), with b so large that
  T * integral of (1 - Phi(b - x)) dP <= 1e-30 * delta.  This moves delta by a relative 1e-30 at most, and keeps events
  far rarer than delta from dominating the moment generating function.
* On the parabola P is undamped, and the path in x is bent into the upper half plane beyond the point where
  q exp((2y-1)/(2s^2)) = 1-q (passing between the branch points of log r, so without effect on the
  integral), which removes the cancellation that large Re z would cause on the real line.
* The end of either contour follows from a bound (evaluated in doubles on the line), not from samples.  For small sigma
  the loss is close to a lattice (multiples of one hit's loss) and the integrand has resonances: it falls far below
  delta and rises again.  Shifting x along a path with Im log r >= 0 bounds |phi(c + iv)| by a function that decreases
  in v, and the sum stops only where that bound is negligible.  A contour with no affordable end is refused.
* The abscissa c and the step sizes are planned in double precision from a saddle point; they affect the cost and the
  truncation error, but no value enters the result.

Method, T = 1: closed form.  Method, T = 2: delta_2(eps) = E[delta_1(eps - Z_1)] by tanh-sinh quadrature over panels.

Small sigma: hits_delta, a plain sum with an error bound, shares nothing with the contours and checks them.

Agreement.  Balls enclose rounding only, not discretisation.  Each value is therefore computed twice, with a different
abscissa c, different step sizes and grid offset in u and x, a different damping point and a different precision (for
T = 1: closed form against quadrature of the defining integral), and a value is returned only if the two runs agree to
the digits asked for (relative); otherwise ValueError is raised.  The direction that is not binding is dismissed when
the Chernoff bound puts its delta below half of the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from flint import acb, acb_mat, arb, ctx
from scipy.special import expit, log_ndtr

REMOVE = "remove"
ADD = "add"
MAX_WORK = 1.0e7  # node products allowed in one run
MAX_LINE_NODES = 40000


# --------------------------------------------------------------------------------------------------------------------
# Double-precision planning
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """The numerical parameters that differ between the two runs."""

    abscissa: float
    step: float
    grid: float
    shift: float
    damp: float
    bits: int
    nats: float


FIRST = Variant(abscissa=1.0, step=1.0, grid=1.0, shift=0.0, damp=70.0, bits=0, nats=0.0)
SECOND = Variant(abscissa=0.83, step=0.79, grid=0.87, shift=0.37, damp=75.0, bits=53, nats=6.0)


def _damping_point(q: float, sigma: float, steps: int, log_delta: float, nats: float) -> float:
    """The point b with steps * integral of Phi(x - b) dP <= exp(-nats) * delta (in units of sigma)."""

    def log_mass(b: float) -> float:
        rare = math.log(q) + float(log_ndtr((1 / sigma - b) / math.sqrt(2)))
        common = math.log1p(-q) + float(log_ndtr(-b / math.sqrt(2)))
        return math.log(steps) + float(np.logaddexp(rare, common))

    low, high = 0.0, 1 / sigma + 200.0
    for _ in range(60):
        mid = (low + high) / 2
        if log_mass(mid) <= log_delta - nats:
            high = mid
        else:
            low = mid
    return high


class Plan:
    """Saddle-point estimates in double precision for one direction; nothing here enters a result."""

    def __init__(self, q: float, sigma: float, steps: int, direction: str, log_delta: float, damp: float) -> None:
        self.q, self.sigma, self.steps, self.direction, self.log_delta = q, sigma, steps, direction, log_delta
        self.b = _damping_point(q, sigma, steps, log_delta, damp) if direction == REMOVE else math.inf
        self._grid()

    def _grid(self) -> None:
        spacing = 2 * math.pi / max(14.0, 30 / (math.pi * self.sigma))
        spacing = min(spacing, 0.25)
        high = self.b + 12 if self.direction == REMOVE else 45.0
        low = -45.0 if self.direction == REMOVE else -90.0
        self.spacing = spacing
        count = int((high - low) / spacing) + 1
        if count > 3_000_000:
            raise ValueError("the density needs too many nodes")
        self.x = low + spacing * np.arange(count)
        arg = self.x / self.sigma - 0.5 / self.sigma**2
        small = np.minimum(arg, 30.0)
        log_r = np.where(
            arg < 30.0, np.log1p(self.q * np.expm1(small)), np.logaddexp(math.log1p(-self.q), math.log(self.q) + arg)
        )
        weight = -0.5 * self.x**2 - 0.5 * math.log(2 * math.pi) + math.log(spacing)
        if self.direction == REMOVE:
            self.loss = log_r
            self.log_weight = weight + log_r + log_ndtr(self.b - self.x)
        else:
            self.loss = -log_r
            self.log_weight = weight

    def log_mgf(self, c: float) -> tuple[float, float, float]:
        """log E exp(c Z_1) and its first two derivatives."""
        expo = self.log_weight + c * self.loss
        top = float(expo.max())
        tilted = np.exp(expo - top)
        total = float(tilted.sum())
        mean = float((tilted * self.loss).sum()) / total
        var = float((tilted * (self.loss - mean) ** 2).sum()) / total
        if float(np.max(np.where(expo > top - 60, c * self.loss, -1.0))) < 200.0:
            value = math.log1p(float((np.exp(self.log_weight) * np.expm1(np.minimum(c * self.loss, 700))).sum()))
        else:
            value = top + math.log(total)
        return value, mean, var

    def cumulant(self, c: float) -> tuple[float, float, float]:
        value, mean, var = self.log_mgf(c)
        return self.steps * value, self.steps * mean, self.steps * var

    def epsilon_at(self, c: float) -> float:
        """The epsilon whose saddle point is c."""
        return self.cumulant(c)[1] - 1 / c - 1 / (c + 1)

    def log_delta_at(self, c: float) -> float:
        """The saddle-point estimate of log delta at epsilon_at(c)."""
        value, mean, var = self.cumulant(c)
        eps = mean - 1 / c - 1 / (c + 1)
        curve = var + 1 / c**2 + 1 / (c + 1) ** 2
        return value - eps * c - math.log(c) - math.log1p(c) - 0.5 * math.log(2 * math.pi * curve)

    def _bisect(self, test: Callable[[float], bool]) -> float:
        low, high = math.log(1e-12), math.log(1e18)
        for _ in range(70):
            mid = (low + high) / 2
            if test(math.exp(mid)):
                high = mid
            else:
                low = mid
        return math.exp((low + high) / 2)

    def saddle_for_delta(self) -> float:
        return self._bisect(lambda c: self.log_delta_at(c) <= self.log_delta)

    def saddle_for_epsilon(self, eps: float) -> float:
        return self._bisect(lambda c: self.epsilon_at(c) >= eps)

    def log_chernoff(self, eps: float) -> float:
        """log of an upper bound on delta(eps)."""
        c = self.saddle_for_epsilon(eps)
        return self.chernoff_exponent(c, eps)

    def chernoff_exponent(self, c: float, eps: float) -> float:
        """log of the upper bound on delta(eps) that the abscissa c gives."""
        return self.cumulant(c)[0] - eps * c + c * math.log(c / (c + 1)) - math.log1p(c)

    def exponent(self, c: float, eps: float) -> float:
        return self.cumulant(c)[0] - eps * c - math.log(c) - math.log1p(c)

    def line_step(self, c: float, eps: float, log_delta: float, nats: float) -> float:
        """The step in u at which both neighbouring aliases fall exp(-nats) below delta."""
        left = (-log_delta + nats) / c
        right = min(
            (max(self.chernoff_exponent(c + v, eps) - log_delta, 0.0) + nats) / v
            for v in (c * 2.0**k for k in np.arange(-6, 6, 0.5))
        )
        return 2 * math.pi / float(max(left, right))

    def frequency(self, c: float, tol: float) -> float:
        """A bound on how fast the loss varies where the tilted density matters."""
        expo = self.log_weight + c * self.loss
        x = float(self.x[np.nonzero(expo > expo.max() - tol)[0][-1]]) + 0.5
        arg = math.log(self.q) - math.log1p(-self.q) + x / self.sigma - 0.5 / self.sigma**2
        return min(1.0, 2 / (1 + math.exp(-max(arg, -700.0)))) / self.sigma

    def best_abscissa(self, eps: float, log_delta: float) -> float:
        """The c at or below the saddle point that allows the longest step."""
        saddle = self.saddle_for_epsilon(eps)
        choices = [saddle * float(f) for f in np.geomspace(0.1, 1.2, 24)]
        return max(choices, key=lambda c: self.line_step(c, eps, log_delta, 46.0))

    def _lifted(self, c: float, kappa: float) -> tuple[np.ndarray, np.ndarray]:
        """log |density * exp(c loss) * dx/dt| and |Im loss| along a path x(t) = t + i h(t) that passes below the branch
        point of log r at middle + i pi sigma (for the add direction: along its mirror image)."""
        q, sigma = self.q, self.sigma
        middle = sigma * (math.log1p(-q) - math.log(q)) + 0.5 / sigma
        spacing = min(sigma / 8, 0.2)
        low, high = (-45.0, self.b + 60.0) if self.direction == REMOVE else (-90.0, 45.0)
        if (high - low) / spacing > 1_000_000:
            raise ValueError("the density needs too many nodes")
        t = np.arange(low, high, spacing)
        place = (t - middle) / sigma
        # h follows kappa times the slope of log r, but is at most 2 sigma at the branch point
        height, rise = np.zeros_like(t), np.zeros_like(t)
        flat = min(kappa, 1.2 * sigma)
        parts = [(flat, math.log(kappa / flat))] if kappa > 0 else []
        if kappa > flat:
            parts.append((kappa - flat, -max(0.0, math.log((kappa - flat) / (0.8 * sigma)))))
        for size, offset in parts:
            logistic = expit(place + offset)
            height += size * logistic
            rise += size * logistic * (1 - logistic) / sigma
        x = t + 1j * height
        zeta = place + 1j * height / sigma
        right = place > 0
        log_r = math.log1p(-q) + np.where(right, zeta, 0) + np.log1p(np.exp(np.where(right, -zeta, zeta)))
        size = (-0.5 * x * x).real + 0.5 * np.log1p(rise**2)
        if self.direction == REMOVE:
            size = size + (1 + c) * log_r.real + log_ndtr(self.b - x).real
        else:
            size = size - c * log_r.real
        return size, log_r.imag

    def _log_lifted_sum(self, c: float, u: float, kappa: float) -> float:
        """log of the sum of |density * exp((c + iu) loss) * dx/dt| along the lifted path; infinite if not reliable."""
        size, imag = self._lifted(c, kappa)
        expo = size - u * imag
        top = float(expo.max())
        if not math.isfinite(top) or max(expo[0], expo[-1]) > top - 60.0:
            return math.inf
        return top + math.log(float(np.exp(expo - top).sum()))

    def log_tail_ratio(self, c: float, u: float, plain: float) -> float:
        """A bound on log |phi(c + iv) / phi(c)| that holds for every v >= u; plain is the log of the unlifted sum.

        |phi(c + iv)| is at most the integral of |density * exp(c loss)| * exp(-v Im loss) along any admissible path,
        and Im loss >= 0 there, so the bound decreases in v: no resonance of the loss can hide behind it.
        """
        full = u / self.sigma
        heights = {1.3 * full, full, 0.6 * full, 0.3 * full, min(full, 4.0), min(full, 9.0)}
        return min(0.0, min(self._log_lifted_sum(c, u, kappa) for kappa in heights) - plain)

    def line_length(self, c: float, eps: float, log_delta: float, nats: float, step: float) -> float:
        """A u beyond which the integrand on the straight line is exp(-nats) below delta, everywhere."""
        plain = self._log_lifted_sum(c, 0.0, 0.0)
        if not math.isfinite(plain):
            raise ValueError("the density reaches beyond its grid")
        head = self.cumulant(c)[0] - eps * c

        def calm(u: float) -> bool:
            tail = math.log(u) - math.log(abs(complex(c, u))) - math.log(abs(complex(c + 1, u)))
            return self.steps * self.log_tail_ratio(c, u, plain) + head + tail < log_delta - nats

        high = 8 * step
        while not calm(high):
            high *= 2
            if high > MAX_LINE_NODES * step:
                raise ValueError("the line integral needs too many nodes")
        low = high / 2
        while high > 1.04 * low:
            mid = math.sqrt(low * high)
            low, high = (low, mid) if calm(mid) else (mid, high)
        return high


# --------------------------------------------------------------------------------------------------------------------
# The contour integral in ball arithmetic
# --------------------------------------------------------------------------------------------------------------------


@dataclass
class Contour:
    """Values of exp(K(z)) z'(u) / (i z (z+1)) at the trapezoid nodes of one contour."""

    step: arb
    z: list[acb]
    g: list[acb]

    def delta_and_slope(self, eps: arb) -> tuple[arb, arb]:
        """delta(eps) and its derivative."""
        value, slope = acb(0), acb(0)
        for k, (z, g) in enumerate(zip(self.z, self.g, strict=True)):
            term = g * (-eps * z).exp()
            if k == 0:
                term = term / 2
            value += term
            slope -= term * z
        scale = self.step / arb.pi()
        return value.real * scale, slope.real * scale


def _density_nodes(
    q: float, sigma: float, direction: str, b: float, spacing: float, shift: float, low: float, high: float
) -> tuple[list[arb], list[arb]]:
    """Losses and weights (under P or Q, damped) of the trapezoid rule over x."""
    qq, ss, hh = arb(q), arb(sigma), arb(spacing)
    first = math.floor(low / spacing)
    last = math.ceil(high / spacing)
    inv, half = 1 / ss, 1 / (2 * ss * ss)
    norm = hh / (2 * arb.pi()).sqrt()
    root = arb(2).sqrt()
    losses, weights = [], []
    for j in range(first, last + 1):
        x = (j + arb(shift)) * hh
        r = 1 - qq + qq * (x * inv - half).exp()
        w = norm * (-x * x / 2).exp()
        log_r = r.log()
        if direction == REMOVE:
            w *= r
            if x > b - 25:
                w *= ((x - arb(b)) / root).erfc() / 2
            losses.append(log_r)
        else:
            losses.append(-log_r)
        weights.append(w)
    return losses, weights


def _span(plan: Plan, c_values: list[float], floor: float, damped: bool) -> tuple[float, float, float]:
    """The x range in which weight * exp(c loss) exceeds exp(floor) for some c, and the largest such log."""
    sigma, q = plan.sigma, plan.q
    sign = 1.0 if plan.direction == REMOVE else -1.0
    top_c = max(c_values)
    low = -50.0 if sign > 0 else -60.0 - top_c / sigma
    high = 60.0 + (top_c + 1) / sigma if sign > 0 else 50.0
    if damped and sign > 0:
        high = min(high, plan.b + 60.0)
    low = max(low, -400.0 - 20 / sigma)
    x = np.linspace(low, high, 60001)
    arg = x / sigma - 0.5 / sigma**2
    log_r = np.logaddexp(math.log1p(-q), math.log(q) + arg)
    base = -0.5 * x**2
    if sign > 0:
        base = base + log_r
        if damped:
            base = base + log_ndtr(plan.b - x)
    keep = np.zeros(x.size, dtype=bool)
    top = -math.inf
    for c in c_values:
        size = base + sign * c * log_r
        top = max(top, float(size.max()))
        keep |= size > floor
    if keep[0] or keep[-1]:
        raise ValueError("the density reaches beyond its grid")
    where = np.nonzero(keep)[0]
    pad = x[1] - x[0]
    return float(x[where[0]] - pad), float(x[where[-1]] + pad), top


def _line(plan: Plan, c: float, eps: float, log_delta: float, var: Variant) -> Contour:
    """The straight contour."""
    nats = 44.0 + var.nats
    step = plan.line_step(c, eps, log_delta, nats) * var.step
    u_max = plan.line_length(c, eps, log_delta, nats, step)
    count = int(u_max / step) + 2
    value = plan.log_mgf(c)[0]
    excess = max(plan.exponent(c, eps) - log_delta, 0.0)
    tol = 52.0 + var.nats + math.log(plan.steps) + excess
    sigma = plan.sigma
    growth = 4.0 if plan.direction == REMOVE else 2.0
    rate = u_max * plan.frequency(c, tol + 40) + max(math.sqrt(growth * tol), tol / (math.pi * sigma))
    spacing = 2 * math.pi / rate * var.grid
    low, high, _ = _span(plan, [c], value - tol, damped=True)
    size = (high - low) / spacing
    if size * count > MAX_WORK:
        raise ValueError("the straight contour costs too much")
    ctx.prec = int(tol / math.log(2)) + 110 + var.bits
    losses, weights = _density_nodes(plan.q, sigma, plan.direction, plan.b, spacing, var.shift, low, high)
    hh, cc = arb(step), arb(c)
    base = [acb(w * (cc * loss).exp()) for w, loss in zip(weights, losses, strict=True)]
    turn = [acb(0, hh * loss).exp() for loss in losses]
    block = max(1, min(64, math.isqrt(count) + 1))
    rows: list[acb] = []
    current = base
    for k in range(block):
        if k:
            current = [a * t for a, t in zip(current, turn, strict=True)]
        rows.extend(current)
    left = acb_mat(block, len(base), rows)
    del rows
    leap = [acb(0, hh * block * loss).exp() for loss in losses]
    column = [acb(1)] * len(base)
    z_list: list[acb] = []
    g_list: list[acb] = []
    width = 8
    for start in range(0, count, block * width):
        cols = []
        for _ in range(width):
            cols.append(column)
            column = [a * t for a, t in zip(column, leap, strict=True)]
        right = acb_mat(len(base), width, [cols[m][j] for j in range(len(base)) for m in range(width)])
        product = left * right
        for m in range(width):
            for k in range(block):
                z = acb(cc, hh * (start + m * block + k))
                g = (plan.steps * product[k, m].log()).exp() / (z * (z + 1))
                z_list.append(z)
                g_list.append(g)
    # the nodes beyond count only fill up the last block, and the grid in x is not fine enough for them
    return Contour(hh, z_list[:count], g_list[:count])


TILT = 0.7


class Tilt:
    """The path x(t) = t + i TILT (t - m + sqrt((t - m)^2 + w^2)) / 2, in double precision, for planning."""

    def __init__(self, plan: Plan) -> None:
        q, sigma = plan.q, plan.sigma
        self.middle = sigma * (math.log1p(-q) - math.log(q)) + 0.5 / sigma
        self.width = 2.0 * sigma
        self.base = math.log1p(-q)
        self.sigma = sigma

    def log_sizes(self, t: np.ndarray, z_values: list[complex]) -> np.ndarray:
        """log |density * r^(1+z)| along the path, largest over the given z."""
        off = t - self.middle
        x = t + 0.5j * TILT * (off + np.sqrt(off**2 + self.width**2))
        zeta = (x - self.middle) / self.sigma
        near = np.where(zeta.real > 0, -zeta, zeta)
        log_r = self.base + np.where(zeta.real > 0, zeta, 0) + np.log(1 + np.exp(near))
        sizes = np.array([(-x * x / 2 + (1 + z) * log_r).real for z in z_values])
        return np.asarray(sizes.max(axis=0))


def _tilted_nodes(
    q: float, sigma: float, tilt: Tilt, spacing: float, shift: float, low: float, high: float
) -> tuple[list[acb], list[acb]]:
    """Complex losses and weights of the trapezoid rule along the tilted path (remove direction, undamped)."""
    qq, ss, hh = arb(q), arb(sigma), arb(spacing)
    middle, width, half_tilt = arb(tilt.middle), arb(tilt.width), arb(TILT) / 2
    norm = hh / (2 * arb.pi()).sqrt()
    odds = (1 - qq) / qq
    log_q = qq.log()
    losses, weights = [], []
    for j in range(math.floor(low / spacing), math.ceil(high / spacing) + 1):
        t = (j + arb(shift)) * hh
        off = t - middle
        root = (off * off + width * width).sqrt()
        x = acb(t, half_tilt * (off + root))
        speed = acb(1, half_tilt * (1 + off / root))
        jump = x / ss - 1 / (2 * ss * ss)
        # the branch of log r that is continuous along the path
        log_r = jump + log_q + (1 + odds * (-jump).exp()).log() if off > 0 else (1 - qq + qq * jump.exp()).log()
        losses.append(log_r)
        weights.append(norm * speed * (log_r - x * x / 2).exp())
    return losses, weights


class ShortContour(ValueError):
    """The contour ended before its tail was certainly small."""


def _parabola(plan: Plan, c: float, eps: float, log_delta: float, var: Variant, stretch: float = 1.0) -> Contour:
    """The contour that bends to the right, for losses that hardly spread unless a step is sampled."""
    excess = max(plan.exponent(c, eps) - log_delta, 0.0)
    decay = 1.25 * (44.0 + var.nats + excess) + 5.0
    slope = 0.5
    step = 0.75 * plan.line_step(c, eps, log_delta, 44.0 + var.nats) * var.step
    u_max = stretch * max(decay / (eps * slope), 6 * c) + 14 * step
    bend = slope / u_max
    count = int(u_max / step) + 2
    if count > 20000:
        raise ValueError("the parabola costs too much")
    tol = 52.0 + var.nats + math.log(plan.steps) + excess
    sigma = plan.sigma
    tilt = Tilt(plan)
    z_values = [complex(c + bend * u * u, u) for u in u_max * np.linspace(0, 1, 9) ** 2]
    wide = np.linspace(-60.0 - 1 / sigma, 120.0 + 4 * (c + 1) / sigma, 40001)
    sizes = tilt.log_sizes(wide, z_values)
    where = np.nonzero(sizes > -tol)[0]
    if where[0] == 0 or where[-1] == wide.size - 1:
        raise ValueError("the density reaches beyond its grid")
    pad = wide[1] - wide[0]
    low, high = float(wide[where[0]] - pad), float(wide[where[-1]] + pad)
    top = max(float(sizes.max()), 0.0)
    a_max = c + slope * u_max
    rate = (u_max + TILT * a_max) / sigma + 1.4 * TILT * high
    rate += max(math.sqrt(2 * (tol + top) / (1 - TILT**2)), (tol + min(top, a_max)) / (1.8 * sigma))
    spacing = 2 * math.pi / rate * var.grid
    size = (high - low) / spacing
    bits = int((tol + top) / math.log(2)) + 110 + var.bits
    if size * count * (4 + bits / 250) > 1.5 * MAX_WORK:
        raise ValueError("the parabola costs too much")
    ctx.prec = bits
    losses, weights = _tilted_nodes(plan.q, sigma, tilt, spacing, var.shift, low, high)
    hh, cc, bb = arb(step), arb(c), arb(bend)
    current = [w * (cc * loss).exp() for w, loss in zip(weights, losses, strict=True)]
    ratio = [(acb(bb * hh * hh, hh) * loss).exp() for loss in losses]
    grow = [(2 * bb * hh * hh * loss).exp() for loss in losses]
    z_list: list[acb] = []
    g_list: list[acb] = []
    limit = log_delta - 44.0 - var.nats
    eps_ball = arb(eps)
    for k in range(count):
        u = hh * k
        z = acb(cc + bb * u * u, u)
        phi = sum(current, acb(0))
        g = (plan.steps * phi.log()).exp() / (z * (z + 1)) * acb(1, -2 * bb * u)
        if k == 0:
            # the tilted path is not symmetric: its value at u = 0 is real only up to discretisation
            g = acb(g.real)
        z_list.append(z)
        g_list.append(g)
        if k and k % 4 == 0:
            size_now = float((abs(g) * (-eps_ball * z.real).exp() * (u + cc)).mid().log())
            if size_now < limit:
                # On the path Im log r >= 0, so the sum of moduli bounds |phi| on the whole vertical ray above z, along
                # which the contour may be closed: small here means that no resonance of the loss is cut off.
                ceiling = sum((abs(x) for x in current), arb(0))
                rest = plan.steps * ceiling.log() - eps_ball * z.real - u.log()
                if float(rest.mid()) < limit:
                    return Contour(hh, z_list, g_list)
        current = [x * t for x, t in zip(current, ratio, strict=True)]
        ratio = [x * t for x, t in zip(ratio, grow, strict=True)]
    raise ShortContour("the integrand on the parabola does not decay")


# --------------------------------------------------------------------------------------------------------------------
# One and two steps
# --------------------------------------------------------------------------------------------------------------------


def _phi(x: arb) -> arb:
    """The standard normal distribution function."""
    return (-x / arb(2).sqrt()).erfc() / 2


class Small:
    """Exact expressions for one step and quadrature for two."""

    def __init__(self, q: float, sigma: float, direction: str) -> None:
        self.q, self.s, self.direction = arb(q), arb(sigma), direction

    def position(self, ratio: arb) -> arb:
        """The x at which r equals ratio (> 1 - q)."""
        return self.s * ((ratio - 1 + self.q) / self.q).log() + 1 / (2 * self.s)

    def ratio(self, x: arb) -> arb:
        return 1 - self.q + self.q * (x / self.s - 1 / (2 * self.s * self.s)).exp()

    def one(self, e: arb) -> arb:
        """delta_1 at log e, for any e > 0."""
        level = e if self.direction == REMOVE else 1 / e
        if level <= 1 - self.q:
            return 1 - e if self.direction == REMOVE else arb(0)
        x = self.position(level)
        shift = 1 / self.s
        if self.direction == REMOVE:
            tail = _phi(-x)
            return (1 - self.q) * tail + self.q * _phi(shift - x) - e * tail
        tail = _phi(x)
        return tail - e * ((1 - self.q) * tail + self.q * _phi(x - shift))

    def one_by_quadrature(self, e: arb, level: int) -> arb:
        """delta_1 at log e by integrating its definition."""
        norm = 1 / (2 * arb.pi()).sqrt()
        if self.direction == REMOVE:
            start = self.position(e)
            reach = max(float(start.mid()), float(1 / self.s.mid()), 0.0) + 45.0
            marks = _marks(float(start.mid()), reach, float(self.s.mid()), [float(start.mid())])
            points = [start, *[arb(m) for m in marks]]
            return _panels(lambda x: (self.ratio(x) - e) * norm * (-x * x / 2).exp(), points, level)
        if 1 / e <= 1 - self.q:
            return arb(0)
        end = self.position(1 / e)
        low = min(float(end.mid()), 0.0) - 45.0
        marks = _marks(low, float(end.mid()), float(self.s.mid()), [float(end.mid())])
        points = [arb(low), *[arb(m) for m in marks], end]
        return _panels(lambda x: (1 - e * self.ratio(x)) * norm * (-x * x / 2).exp(), points, level)

    def two(self, e: arb, level: int) -> arb:
        """delta_2 at log e."""
        norm = 1 / (2 * arb.pi()).sqrt()
        edge = e / (1 - self.q) if self.direction == REMOVE else 1 / (e * (1 - self.q))
        if edge <= 1 - self.q:
            if self.direction == ADD:
                return arb(0)
            raise ValueError("epsilon is negative")
        end = self.position(edge)
        cap = 1 / self.s + 45  # P gives less than exp(-1000) beyond
        if end > cap:
            end = cap
        last, width = float(end.mid()), float(self.s.mid())
        bend = float(self.position(arb(2) * (1 - self.q)).mid())
        low = min(-42.0, last - 5.0)
        marks = _marks(low, last, width, [bend, last])
        points = [arb(low), *[arb(m) for m in marks], end]
        if self.direction == REMOVE:

            def inside(x: arb) -> arb:
                r = self.ratio(x)
                return self.one(e / r) * r * norm * (-x * x / 2).exp()

            tail = _phi(-end)
            far = (1 - self.q) * tail + self.q * _phi(1 / self.s - end) - e * tail
            return far + _panels(inside, points, level)

        def inside_add(x: arb) -> arb:
            return self.one(e * self.ratio(x)) * norm * (-x * x / 2).exp()

        return _panels(inside_add, points, level)


def _marks(low: float, high: float, width: float, centres: list[float]) -> list[float]:
    """Interior panel boundaries: dense near the centres on the scale of width, nowhere longer than 3."""
    raw = {low, high}
    scale = min(width, 1.0)
    for centre in centres:
        for k in (0, 1, 2, 4, 7, 12, 20, 33, 55):
            raw.update((centre - k * scale, centre + k * scale))
    ordered = sorted(m for m in raw if low <= m <= high)
    out: list[float] = []
    for a, b in pairwise(ordered):
        parts = max(1, math.ceil((b - a) / 3.0))
        out.extend(a + (b - a) * k / parts for k in range(parts))
    gap = 1e-3 * scale
    return [m for m in out if low + gap < m < high - gap]


@lru_cache(maxsize=16)
def _tanh_sinh(level: int, bits: int) -> list[tuple[arb, arb]]:
    """Distances from the left end (as a fraction of the length) and weights; level nodes per unit."""
    if ctx.prec != bits:
        raise ValueError("precision changed")
    rows = []
    h = arb(1) / level
    for k in range(-4 * level, 4 * level + 1):
        t = h * k
        inner = arb.pi() / 2 * t.sinh()
        fraction = 1 / (1 + (-2 * inner).exp())
        weight = h * arb.pi() / 4 * t.cosh() / inner.cosh() ** 2
        if float(weight.mid().log()) > -75:
            rows.append((fraction, weight))
    return rows


def _panels(f: Callable[[arb], arb], points: list[arb], level: int) -> arb:
    """Composite tanh-sinh quadrature; the radius of f is dropped, rounding being far below the tolerance."""
    total = arb(0)
    for start, end in pairwise(points):
        a = start.mid()
        length = end.mid() - a
        part = arb(0)
        for fraction, weight in _tanh_sinh(level, ctx.prec):
            part += weight * f(a + length * fraction)
        total += part * length
    return total


# --------------------------------------------------------------------------------------------------------------------
# Small sigma: conditioning on the number of sampled steps
# --------------------------------------------------------------------------------------------------------------------

HITS_ERROR = 1e-12
MAX_HITS = 20000


def hits_delta_with_bound(
    q: float, sigma: float, steps: int, eps: float | str | arb, limit: float = HITS_ERROR
) -> tuple[arb, float]:
    """delta(eps) of the remove direction for small sigma by a plain sum, and a bound on its relative error.

    With w = q/(1-q) exp((2y-1)/(2 s^2)) the loss of a step is log(1-q) + log(1 + w).  Replace log(1 + w) by log w in
    sampled steps and by 0 in the others.  Given n ~ Binomial(T, q) sampled steps the new loss Z' is Gaussian with mean
    T log(1-q) + n (1/(2 s^2) + log(q/(1-q))) and variance n/s^2, so its delta' is a sum of closed forms.  Z' <= Z, and
    f(z) = (1 - exp(eps - z))_+ has 0 <= f'(z) <= exp(c (z - eps)) for every c > 0, hence

        0 <= delta - delta' <= exp(-c eps) (E exp(c Z) - E exp(c Z')) / c <= exp(-c eps) T (M - M') M^(T-1) / c,

    with M' = (1-q)^(1+c) (1 + E_Q[w^(1+c)]) and M - M' = (1-q)^(1+c) E_Q[(1+w)^(1+c) - 1 - w^(1+c)] per step.  The
    bound is evaluated near its best c, and delta' <= delta <= delta' (1 + bound) up to the 1e-25 of the series dropped.
    Raises ValueError if the bound exceeds the limit.
    """
    ctx.prec = 300
    qq, ss, level = arb(q), arb(sigma), arb(eps)
    if not (0 < q < 1 and level >= 0):
        raise ValueError("q must lie inside (0, 1) and epsilon must not be negative")
    if q * steps > MAX_HITS:
        raise ValueError("too many sampled steps")
    log_miss, log_odds = (1 - qq).log(), (qq / (1 - qq)).log()
    gain, spread = 1 / (2 * ss * ss) + log_odds, 1 / (ss * ss)

    def log_rough(c: float) -> float:
        peak = float(log_odds) * (1 + c) + 0.5 * c * (1 + c) / sigma**2
        return steps * (math.log1p(-q) * (1 + c) + float(np.logaddexp(0.0, peak))) - c * float(level) - math.log(c)

    c = min((float(v) for v in np.geomspace(1e-8, 1e8, 1601)), key=log_rough)
    cc = arb(c)
    # E_Q[(1+w)^(1+c) - 1 - w^(1+c)] by the trapezoid rule in x = y/s; for 0 < c the integrand is positive
    middle, top_x = float(ss * -log_odds + 1 / (2 * ss)), (1 + c) / sigma + 45.0
    low, high = min(middle, 0.0) - 45.0, max(middle, top_x) + 5.0
    spacing = sigma / 6
    if (high - low) / spacing > 40000:
        raise ValueError("the error bound costs too much")
    extra = arb(0)
    for j in range(math.floor(low / spacing), math.ceil(high / spacing) + 1):
        x = arb(j) * arb(spacing)
        w = (log_odds + x / ss - 1 / (2 * ss * ss)).exp()
        extra += ((1 + w) ** (1 + cc) - 1 - w ** (1 + cc)) * (-x * x / 2).exp()
    extra *= arb(spacing) / (2 * arb.pi()).sqrt()
    lead = (log_miss * (1 + cc)).exp()
    extra *= lead
    full = lead * (1 + (log_odds * (1 + cc) + cc * (1 + cc) / (2 * ss * ss)).exp()) + extra
    error = steps * extra * (full.log() * (steps - 1) - cc * level).exp() / cc

    log_weight, total = steps * log_miss, arb(0)
    for n in range(1, steps + 1):
        if n > MAX_HITS:
            raise ValueError("too many sampled steps")
        log_weight += (arb(steps - n + 1) / n).log() + log_odds
        weight = log_weight.exp()
        mean, var = steps * log_miss + n * gain, n * spread
        root = var.sqrt()
        gap = mean - level
        total += weight * (_phi(gap / root) - (var / 2 - gap).exp() * _phi((gap - var) / root))
        # the weights of the remaining n fall by this ratio at least, and each has delta <= 1
        ratio = arb(steps - n) / (n + 1) * log_odds.exp()
        if ratio < 0.9 and weight * 10 < total * arb(10) ** -25:
            break
    bound = float((error / total).abs_upper())
    if not bound < limit:
        raise ValueError("sampled and unsampled outcomes are not separated")
    return total, bound


def hits_delta(q: float, sigma: float, steps: int, eps: float | str | arb) -> arb:
    """delta(eps) of the remove direction for small sigma, to a relative error of HITS_ERROR; else ValueError."""
    return hits_delta_with_bound(q, sigma, steps, eps)[0]


# --------------------------------------------------------------------------------------------------------------------
# Roots and agreement
# --------------------------------------------------------------------------------------------------------------------


def _small_function(q: float, sigma: float, steps: int, direction: str, second: bool) -> Callable[[arb], arb]:
    ctx.prec = 450 if second else 380
    small = Small(q, sigma, direction)
    if steps == 1:
        if second:
            return lambda eps: small.one_by_quadrature(eps.exp(), 12)
        return lambda eps: small.one(eps.exp())
    level = 12 if second else 9
    return lambda eps: small.two(eps.exp(), level)


def _secant(function: Callable[[arb], arb], target: arb, guess: float) -> arb:
    """The root of function(eps) = target near guess, by bracketing and the Illinois rule on the logarithm."""
    log_target = target.log()

    def f(eps: arb) -> arb:
        value = function(eps)
        if not value > 0:
            return arb(-1e6)
        return (value.log() - log_target).mid()

    a = arb(max(guess, 1e-300))
    fa = f(a)
    scale = 1e-3
    b, fb = a, fa
    for _ in range(60):
        b = a * (1 + scale) if fa > 0 else a * max(1 - scale, 0.1)
        fb = f(b)
        if (fa > 0) != (fb > 0):
            break
        a, fa = b, fb
        scale *= 4
    else:
        raise ValueError("no bracket for the root")
    for _ in range(80):
        c = ((a * fb - b * fa) / (fb - fa)).mid()
        fc = f(c)
        if (fc > 0) == (fb > 0):
            fa = fa / 2
        else:
            a, fa = b, fb
        moved = abs(c - b)
        b, fb = c, fc
        if moved < abs(c) * arb(10) ** -24 or fc == 0:
            return b
    raise ValueError("the root search did not settle")


def _newton(contour: Contour, target: arb, guess: float) -> arb:
    """The root of the contour's delta, by Newton's method on the logarithm."""
    eps = arb(guess)
    reach = 3 / contour.z[0].real
    for _ in range(60):
        value, slope = contour.delta_and_slope(eps)
        if not (value > 0 and slope < 0):
            if abs(eps - arb(guess)) > reach / 2:
                return ((eps + arb(guess)) / 2).mid()  # far from the plan: plan again from here
            raise ValueError("the contour integral lost its accuracy")
        move = -((value.log() - target.log()) * value / slope).mid()
        if abs(move) > reach:
            move = reach.mid() if move > 0 else -reach.mid()
        eps = (eps + move).mid()
        if abs(eps - arb(guess)) > 2 * reach:
            return eps  # far from the plan: plan again from here
        if abs(move) < abs(eps) * arb(10) ** -22:
            return eps
    raise ValueError("Newton's method did not settle")


def _contour(plan: Plan, eps: float, log_delta: float, var: Variant) -> Contour:
    """Whichever contour is affordable, straight first."""
    c = float(plan.best_abscissa(eps, log_delta)) * var.abscissa
    try:
        return _line(plan, c, eps, log_delta, var)
    except ValueError:
        if plan.direction == ADD or eps <= 0:
            raise
    for stretch in (1.0, 2.0, 4.0):
        try:
            return _parabola(plan, c, eps, log_delta, var, stretch)
        except ShortContour:
            continue
    raise ShortContour("the integrand on the parabola does not decay")


def _root(plan: Plan, delta: float, var: Variant, guess: float) -> arb:
    """Where delta(eps) = delta in one direction, re-planned if the guess was far off."""
    for _ in range(5):
        contour = _contour(plan, guess, plan.log_delta, var)
        eps = _newton(contour, arb(delta), guess)
        c = float(contour.z[0].real.mid())
        if abs(float(eps.mid()) - guess) * c < 1.5:
            return eps
        guess = float(eps.mid())
    raise ValueError("the estimate did not settle")


def _single_hit_guess(q: float, sigma: float, steps: int, delta: float) -> float:
    """Where steps * delta_1(eps + steps q) = delta: the guess when at most about one step is sampled."""
    ctx.prec = 1600
    small = Small(q, sigma, REMOVE)
    drift = arb(q) * steps
    low, high = -40.0, math.log(2 / sigma**2 + 80 / sigma + 10)
    if not small.one((arb(math.exp(low)) + drift).exp()) * steps > arb(delta):
        return 0.0
    for _ in range(40):
        mid = (low + high) / 2
        if small.one((arb(math.exp(mid)) + drift).exp()) * steps > arb(delta):
            low = mid
        else:
            high = mid
    return math.exp(low)


def _agree(first: arb, second: arb) -> float:
    """Common significant digits of two values."""
    gap = abs(first.mid() - second.mid())
    if gap == 0:
        return 60.0
    return -float((gap / abs(second.mid())).log().mid()) / math.log(10)


def _delta_direction(
    q: float, sigma: float, steps: int, direction: str, eps: float, digits: float
) -> tuple[arb, float]:
    """delta(eps) in one direction, and the digits to which two runs agree."""
    values = []
    for var in (FIRST, SECOND):
        if steps <= 2:
            function = _small_function(q, sigma, steps, direction, var is SECOND)
            values.append(function(arb(eps)))
        else:
            plan = Plan(q, sigma, steps, direction, -1.0, var.damp)
            for _ in range(3):
                c = plan.saddle_for_epsilon(eps)
                log_delta = min(plan.log_delta_at(c), -1e-3)
                plan = Plan(q, sigma, steps, direction, log_delta, var.damp)
            contour = _contour(plan, eps, log_delta, var)
            values.append(contour.delta_and_slope(arb(eps))[0])
    if values[0].mid() == 0 and values[1].mid() == 0:
        return values[1], 60.0
    common = _agree(values[0], values[1])
    if not values[1] > 0 or common < digits:
        raise ValueError(f"the two runs agree to {common:.1f} digits only")
    return values[1], common


def delta_with_digits(q: float, sigma: float, steps: int, eps: float, digits: int = 15) -> tuple[arb, float]:
    """The larger delta of the two directions, and the digits to which two runs agree."""
    value, common = _delta_direction(q, sigma, steps, REMOVE, eps, digits)
    limit = -steps * math.log1p(-q)
    if eps >= limit * (1 + 1e-9):
        return value, common
    bound = Plan(q, sigma, steps, ADD, math.log(float(value.mid()) or 1e-320), 70.0).log_chernoff(eps)
    if bound < float(value.mid().log()) - 0.7:
        return value, common
    other, other_common = _delta_direction(q, sigma, steps, ADD, eps, digits)
    return (other, other_common) if other > value else (value, common)


def epsilon_with_digits(q: float, sigma: float, steps: int, delta: float, digits: int = 15) -> tuple[arb, float]:
    """The epsilon of the binding direction, and the digits to which two runs agree (60 for an exact zero)."""
    log_delta = math.log(delta)
    best, best_common = None, 60.0
    for direction in (REMOVE, ADD):
        plan = Plan(q, sigma, steps, direction, log_delta, FIRST.damp)
        if direction == ADD:
            limit = -steps * math.log1p(-q)
            known = float(best.mid()) if best is not None else 0.0
            if known >= limit * (1 + 1e-9) or plan.log_chernoff(known) < log_delta - 0.7:
                continue
        guess = plan.epsilon_at(plan.saddle_for_delta())
        scale = math.sqrt(max(plan.cumulant(1e-12)[2], 1e-300))
        if guess < 1e-3 * scale:
            at_zero, _ = _delta_direction(q, sigma, steps, direction, 0.0, min(digits, 12))
            if at_zero < arb(delta) * (1 - arb(10) ** -9):
                continue
            guess = max(guess, 1e-4 * scale)
        roots: list[arb] = []
        for var in (FIRST, SECOND):
            if steps <= 2:
                function = _small_function(q, sigma, steps, direction, var is SECOND)
                if steps == 1 and var is SECOND:
                    # check the closed-form root against the integral of the definition
                    root = roots[0]
                    gap = (function(root).log() - arb(delta).log()).mid()
                    move = root * arb(10) ** -12
                    slope = (
                        _small_function(q, sigma, 1, direction, False)(root + move).log() - arb(delta).log()
                    ) / move
                    roots.append((root - gap / slope).mid())
                else:
                    roots.append(_secant(function, arb(delta), guess))
            else:
                here = plan if var is FIRST else Plan(q, sigma, steps, direction, log_delta, var.damp)
                try:
                    roots.append(_root(here, delta, var, guess))
                except ValueError:
                    if direction == ADD or q * steps > 1 or roots:
                        raise
                    guess = _single_hit_guess(q, sigma, steps, delta)
                    if guess < 1e-6:
                        raise
                    roots.append(_root(here, delta, var, guess))
                guess = float(roots[-1].mid())
        common = _agree(roots[0], roots[1])
        if common < digits or not roots[1] > 0:
            raise ValueError(f"the two runs agree to {common:.1f} digits only ({direction})")
        if best is None or roots[1] > best:
            best, best_common = roots[1], common
    return (arb(0), 60.0) if best is None else (best, best_common)


def _text(value: arb, digits: int) -> str:
    return "0" if value.mid() == 0 else value.mid().str(digits, radius=False)


def epsilon(q: float, sigma: float, steps: int, delta: float, digits: int = 15) -> str:
    """The smallest eps >= 0 at which both directions have delta(eps) <= delta, to the given significant digits.

    Raises ValueError when no affordable contour exists or the two runs do not agree to the digits asked for.
    """
    return _text(epsilon_with_digits(q, sigma, steps, delta, digits)[0], digits)


def delta(q: float, sigma: float, steps: int, epsilon: float, digits: int = 15) -> str:
    """The larger of the two directions' delta(epsilon), to the given significant digits; raises like epsilon()."""
    return _text(delta_with_digits(q, sigma, steps, epsilon, digits)[0], digits)
