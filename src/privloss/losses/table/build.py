"""Pairs on countably many outcomes, as rows: one function per mechanism, each with the reason why the pair is worst."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from privloss.errors import Unsupported
from privloss.losses.table.polygon import revealed
from privloss.losses.table.table import Table
from privloss.numerics.floats import Real, raised
from privloss.numerics.stable import exp_or_inf, log_sampled

_LARGEST_SIGMA, _LARGEST_SENSITIVITY = 1_000.0, 100_000
REVEALED = revealed()
_MOST_SHIFT = 10.0  # sensitivity / sigma
_REACH = 39.0  # standard deviations beyond which e^(-x^2/2) is below the smallest double


def from_vectors(p: Sequence[float], q: Sequence[float]) -> Table:
    """Two vectors, each made to sum to one; outcomes that one side alone can produce have infinite loss."""
    a, b = np.array(p, dtype=float) / math.fsum(p), np.array(q, dtype=float) / math.fsum(q)
    both = (a > 0) & (b > 0)
    if not np.any(both):
        return REVEALED
    values = np.log(a[both]) - np.log(b[both])
    near = np.abs(values) < 0.5  # log(a/b) = log1p((a-b)/b) keeps the digits of small losses
    with np.errstate(over="ignore"):
        gap = np.where(near, (a[both] - b[both]) / b[both], 0.0)
    values = np.where(near, np.log1p(gap), values)
    # where the loss is large, its logarithms are rounded on their own scale
    size = np.abs(np.log(a[both])) + np.abs(np.log(b[both]))
    wobble = 4.0 + float(np.max(np.where(near, 0.0, 2 * size / np.maximum(np.abs(values), 0.5))))
    # making the vectors sum to one rounds every entry, and so every loss by a few units, however small it is
    lost = math.fsum(a[~both]), math.fsum(b[~both])
    exact = all(_total(v) == 1 for v in (p, q)) and all(
        _total(v[~both]) == x for v, x in zip((a, b), lost, strict=True)
    )
    return Table(values, a[both], *lost, slack=4.0, wobble=wobble, absolute=8.0, exact=exact)


def _total(values: Iterable[float]) -> Fraction:
    """Without rounding."""
    return sum((Fraction(float(v)) for v in values), Fraction(0))


def symmetric_response(eps: float, others: float, delta: float) -> Table:
    """Randomised response with `others` answers that say nothing, and delta of certain disclosure, as a row."""
    share = (1 - delta) / (1 + (others + 1) * math.exp(-eps))
    values, masses = [eps, -eps], [share, share * math.exp(-eps)]
    if others > 0:
        values.append(0.0)
        masses.append(others * share * math.exp(-eps))
    return Table(np.array(values), np.array(masses), delta, delta)


def unary_encoding(p: float, q: float) -> Table:
    """The bits of two answers: (1,0) against (0,1); other bits have the same law (post-processing may drop them)."""
    one, two = (
        [p * (1 - q), p * q, (1 - p) * (1 - q), (1 - p) * q],
        [q * (1 - p), q * p, (1 - q) * (1 - p), (1 - q) * p],
    )
    return from_vectors([one[0], one[1] + one[2], one[3]], [two[0], two[1] + two[2], two[3]])


def discrete_laplace(scale: float, sensitivity: int) -> Table:
    """e^-|k-D|/s against e^-|k|/s: losses (2k - D)/s for 0 <= k <= D, the ends holding both tails.

    A monotone likelihood ratio: the shift by the full sensitivity is worst (it composes smaller shifts, and each extra
    shift is a further step in the same direction).
    """
    if sensitivity > _LARGEST_SENSITIVITY:
        raise Unsupported(f"sensitivity = {sensitivity!r}: discrete Laplace is supported up to {_LARGEST_SENSITIVITY}.")
    a = 1 / scale
    k = np.arange(sensitivity + 1)
    masses = math.tanh(0.5 * a) * np.exp(-a * (sensitivity - k))
    tail = 1 / (1 + math.exp(-a))
    masses[-1], masses[0] = tail, tail * math.exp(-a * sensitivity)
    return Table((2.0 * k - sensitivity) * a, masses, slack=8.0 + 4 * a * sensitivity, wobble=2.0)


def within_table(sigma: float, sensitivity: int) -> bool:
    """Whether a discrete Gaussian makes a table of reasonable size."""
    return sigma <= _LARGEST_SIGMA and sensitivity <= _MOST_SHIFT * sigma


def discrete_gaussian(sigma: float, sensitivity: int) -> Table:
    """e^-(k-D)^2/2s^2 against e^-k^2/2s^2: losses (2k - D) D/2s^2; tails beyond 39 sigma are bounded, not summed.

    Tilting by e^(cZ) moves the centre from D to (c+1) D, so the part beyond D + R is at most e^(c(c+1)D^2/2s^2) times
    e^(-g^2/2s^2) (1 + s^2/g), g = R - c D; for Q against P, which keeps k >= D - R, g = R - (c+1) D.
    """
    if not within_table(sigma, sensitivity):
        raise Unsupported(
            f"sigma = {sigma!r}, sensitivity = {sensitivity!r}: a discrete Gaussian as a table (small sigma, or on a "
            f"sample) is supported for sigma up to {_LARGEST_SIGMA:g} and sensitivity up to {_MOST_SHIFT:g} sigma."
        )
    reach = math.ceil(_REACH * sigma) + 1
    k = np.arange(-reach, sensitivity + reach + 1)
    k = k[np.abs(k - sensitivity) <= reach]
    centre = np.arange(-reach, reach + 1)
    weight = np.exp(-0.5 * (centre / sigma) ** 2)
    masses = np.exp(-0.5 * ((k - sensitivity) / sigma) ** 2) / math.fsum(weight)
    unit = sensitivity / (2 * sigma**2)

    def beyond(c: float, t: Real, gap: float) -> Real:
        """Both ends: the one that the tilt brings `gap` closer, and the other, where losses are negative."""
        if gap <= sigma:
            return np.full_like(t, np.inf)
        log = c * (c + 1) * sensitivity**2 / (2 * sigma**2) - 0.5 * (gap / sigma) ** 2 + math.log1p(sigma**2 / gap)
        rest = -0.5 * (reach / sigma) ** 2 + math.log1p(sigma**2 / reach)
        return np.full_like(t, 4 * exp_or_inf(max(log, rest)))

    def forth(c: float, t: Real) -> Real:
        return beyond(c, t, reach - c * sensitivity)

    def back(c: float, t: Real) -> Real:  # Q is centred at 0, and what is kept ends at D - R
        return beyond(c, t, reach - (c + 1) * sensitivity)

    rho = raised(sensitivity**2 / (2 * sigma**2), 8)  # Canonne, Kamath, Steinke 2020, Thm. 4
    slack = 16 + len(k) / 1000 + 4 * ((k - sensitivity) / sigma) ** 2  # e^-x is as wrong as x is large
    return Table((2.0 * k - sensitivity) * unit, masses, slack=slack, wobble=4.0, missing=(forth, back), rho=rho)


def poisson(row: Table, rate: float) -> Table:
    """(1-q)Q + qP against Q, from the row of P against Q (Zhu, Dong, Wang 2022, Thm. 11).

    Outcomes that only Q produces keep the loss log(1-q); those that only P produces stay infinite, with mass q delta.
    Tails: r' <= max(1, r), so what is missing is at most what was missing of P and of Q.
    """
    values = log_sampled(rate, row.values)
    masses = row.masses * np.exp(values - row.values)
    # e^(v' - v) is as wrong as v is; v' itself carries 8 units
    slack = row.slack + 8 + (2 * row.wobble + 8) * (1 + np.abs(row.values)) + row.absolute
    if row.back > 0:
        values, masses = np.append(values, math.log1p(-rate)), np.append(masses, row.back * (1 - rate))
        slack = np.append(slack, slack.max(initial=0.0) + 8)
    missing = None
    if row.missing is not None:
        forth, back = row.missing

        def tail(c: float, t: Real) -> Real:
            return forth(c, t) + 2 * back(0.0, t)

        def tail_back(c: float, t: Real) -> Real:  # r'^-c <= (1-q)^-c
            return (forth(0.0, t) + back(0.0, t)) * exp_or_inf(-(c + 1) * math.log1p(-rate))

        missing = (tail, tail_back)
    wobble, absolute = _sampled_roundings(row, rate, values[: len(row.values)])
    return Table(values, masses, rate * row.delta, 0.0, slack, wobble, missing, absolute=absolute)


def _sampled_roundings(row: Table, rate: float, sampled: Real) -> tuple[float | Real, float]:
    """`wobble` and `absolute` of v' = log(1 - q + q e^v).

    dv'/dv = q e^(v - v') =: p, which is at most 1 and rises with v by a factor e at most per unit: between v and a v
    that is wrong by d it stays below p e^|d|. So a relative error of v grows by v p / v', and an absolute error d of
    any v leaves at most |d| e^|d| max p, hardly anything on a small sample.

    The rounding of v' itself is relative, below the 8 units that are added to `wobble` (see `log_sampled`). With
    x = q (e^v - 1), which carries four units, log1p(x) is as wrong as |x| / ((1+x) |log(1+x)|) <= 1.31 times that for
    x >= -0.4; below, the sum (1-q) + q e^v <= 0.6 of positive terms carries three, which its logarithm, at most -0.51,
    doubles. log(1-q), where only Q is, carries two. Beyond v = 600, v + log q is as wrong as its terms are large.
    """
    p = rate * np.exp(row.values - sampled)
    size = np.maximum(np.abs(sampled), 1e-300)
    growth = (np.abs(row.values) * p / size)[row.values != 0].max(initial=1.0)
    far = np.where(row.values > 600, 2 * (np.abs(row.values) - math.log(rate)) / size, 0.0)
    wobble = row.wobble * max(1.0, float(growth)) + 8 + float(far.max())
    # p as computed: the roundings of v and v' are absolute errors of its logarithm
    units = 32 + 4 * (float(np.max(wobble)) + 2) * (1 + float(np.abs(row.values).max())) + 4 * row.absolute
    return wobble, raised(row.absolute * min(float(p.max()), 1.0), units)
