"""The Poisson-subsampled Gaussian: P = (1-q) N(0, sigma^2) + q N(1, sigma^2) against Q = N(0, sigma^2).

`mixture_grid` proves the quadrature error, `mixture_sums` evaluates M(z) and bounds its rounding, `mixture_tail` proves
the decay of the line; here they become a `PrivacyLoss`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from privloss.losses.base import Concentration, PrivacyLoss, columns
from privloss.losses.closed.gaussian import GaussianLoss
from privloss.losses.density.profile import sampled_hockey_stick
from privloss.losses.mixture.explicit import explicit_grid
from privloss.losses.mixture.grid import Majorant, Members, majorant, quick_range
from privloss.losses.mixture.rare import RareLosses
from privloss.losses.mixture.search import SearchNodes
from privloss.losses.mixture.sums import Mean, means, read, tiled, upper
from privloss.losses.mixture.tail import Decay
from privloss.losses.table.brackets import CORNERS, MARGIN, MOST_ROWS, Brackets, OneUse
from privloss.losses.table.table import Profile, Table
from privloss.numerics.contour.transform import LineValues, TooExpensive
from privloss.numerics.floats import UNIT, Real, lowered, padded_down, padded_up, raised
from privloss.numerics.stable import log_sampled
from privloss.numerics.work import charge

_CHUNK = 1_000_000  # elements of the largest temporary array
_MAX_WORK = 150_000_000  # multiplications in all: below a second
_MOST_KINDS = 40  # of steps in a plan that are split by the largest loss
_LONG_LINE = 20_000  # nodes from which a line is a blurred one, of which an answer may need several
_CLOSE = math.log(1e-12)  # share of delta that a close trim may lose
_SMALL = 1.4  # of epsilon: losses up to here leave a close trim enough tilt
_LIFT_FROM = 60.0  # t * theta beyond which oscillation on the real axis costs more than complex arithmetic


@dataclass(frozen=True, eq=False)
class GaussianMixtureLoss(PrivacyLoss):
    """Bundle over arrays `rate`, `sigma` (noise / sensitivity) and `count`."""

    place = 1
    pointwise = False  # equally spaced heights factor
    rate: Real
    sigma: Real
    count: Real
    flipped: bool = False
    trim: Real | None = None  # outcomes y > trim are left out (P against Q); see `trimmed`
    log_beyond: Real | None = None  # log of upper bounds on P[y > trim] for one step
    _searched: dict[int, SearchNodes] = field(default_factory=dict, repr=False)  # by the log of the largest tilt

    @classmethod
    def one(cls, rate: float, sigma: float) -> GaussianMixtureLoss:
        """A single step."""
        return cls(np.array([rate]), np.array([sigma]), np.ones(1))

    def times(self, count: int) -> GaussianMixtureLoss:
        return GaussianMixtureLoss(self.rate, self.sigma, count * self.count, self.flipped, self.trim, self.log_beyond)

    @classmethod
    def merged(cls, parts: Sequence[GaussianMixtureLoss]) -> Sequence[GaussianMixtureLoss]:
        """Steps as they were described: nothing trimmed yet, and all in one direction."""
        found: list[GaussianMixtureLoss] = []
        for flipped in (False, True):
            same = [p for p in parts if p.flipped == flipped]
            if same:
                rate, sigma, count = columns(same, "rate", "sigma", "count")
                found.append(cls(rate, sigma, count, flipped))
        return found

    def concentration(self) -> Concentration:
        """1/(2 sigma^2) each, in the limit t -> inf, exactly as without sampling: E[r^(t+1)] <= 1 - q +
        q e^(t(t+1)/2sigma^2) <= e^(t(t+1)/2sigma^2), and log E[r^(t+1)] >= (t+1) log q + t(t+1)/2sigma^2."""
        return Concentration(limit=float((0.5 * self.count / self.sigma**2).sum()))

    def reversed(self) -> GaussianMixtureLoss:
        other = GaussianMixtureLoss(self.rate, self.sigma, self.count, not self.flipped)
        if self.trim is None and "means" in self.__dict__:  # both were found together
            other.__dict__["means"] = self.means
        return other

    @property
    def kinds(self) -> int:
        return len(self.rate)

    @property
    def solved_by_closed_form(self) -> bool:
        return bool(self.count.sum() == 1)

    @property
    def largest(self) -> float:
        # Q against P: Z = -log r < -log(1-q); rounded up
        top = float(-(self.count * np.log1p(-self.rate)).sum())
        return raised(top, 8 + len(self.rate)) if self.flipped else np.inf

    @property
    def largest_lower(self) -> float:
        top = float(-(self.count * np.log1p(-self.rate)).sum())
        return lowered(top, 8 + len(self.rate)) if self.flipped else np.inf

    @property
    def log_lost(self) -> float:
        """log of an upper bound on the probability that some outcome was left out."""
        return -np.inf if self.log_beyond is None else float(np.logaddexp.reduce(self.log_beyond + np.log(self.count)))

    def trimmed(self, c: float, log_delta: float) -> GaussianMixtureLoss:
        """The same without outcomes far rarer than delta, where e^(cZ) would make them the only ones that count.

        For small rates r grows like q e^s long after the outcome has become rarer than any delta of interest; the
        moment generating function would then describe those outcomes and nothing else. The trim leaves 8.5 sigma of
        room beyond the outcomes that decide delta; where even outcomes of a probability of e^CLOSE delta have losses
        far below epsilon (of a sum of normal shape), so that tilts make little of its edge, it is there.
        """
        if self.flipped or self.trim is not None:
            return self
        log_rarest = np.maximum(np.log(self.count * len(self.rate)) - log_delta, 1.0)
        hits = np.maximum(log_rarest + np.log(self.rate), 0.0)
        room = np.maximum(np.sqrt(2 * log_rarest) * self.sigma, 1 + np.sqrt(2 * hits) * self.sigma)
        trim = room + 8.5 * self.sigma
        far = np.maximum(c + 1, trim)
        log_far = self.rows(c).log_ratio(far[:, None])[2][:, 0]
        weight = -0.5 * (far / self.sigma) ** 2 + (c + 1) * log_far + np.log(self.count)
        if np.all((far == trim) | (weight < -30.0)):
            return self
        close = self._quantile(log_delta + _CLOSE)
        normal = self.count @ self._mean.value + np.sqrt(-2 * log_delta * (self.count @ self._mean.variance))
        single = self.rows(c).log_ratio(close[:, None])[2][:, 0].max()
        return self.cut_at(np.minimum(close, trim) if single < _SMALL * normal else trim)

    def rare_losses(self, rest: PrivacyLoss | None) -> RareLosses | None:
        if self.trim is not None or len(self.rate) > _MOST_KINDS:
            return None
        return RareLosses(self.rate, self.sigma, self.count, self.means, rest, self.flipped)

    def brackets(self, log_delta: float) -> Brackets | None:
        if self.trim is not None or len(self.rate) > MOST_ROWS:
            return None
        pairs = (self._bracketed(float(q), float(s), log_delta) for q, s in zip(self.rate, self.sigma, strict=True))
        turned = tuple((low.reversed(), high.reversed()) if self.flipped else (low, high) for low, high in pairs)
        return Brackets(turned, self.count)

    @staticmethod
    def _bracketed(rate: float, sigma: float, log_delta: float) -> tuple[Table, Table]:
        plain = GaussianLoss(sigma**-2).hockey_stick
        forth, back = (_one_use(rate, plain, flipped) for flipped in (False, True))
        reach = math.sqrt(2 * (MARGIN - log_delta)) * sigma
        y = np.linspace(-reach, 1 + reach, CORNERS)
        least = raised(-math.log1p(-rate), 8)
        losses = np.append(log_sampled(rate, (y - 0.5) / sigma**2), -raised(least, 8))
        return OneUse(forth, back, (0.0, 0.0), (0.0, 0.0), (math.inf, least)).tables(losses)

    def unsampled(self) -> GaussianLoss:
        return GaussianLoss(raised(float((self.count / self.sigma**2).sum()), 8 + len(self.rate)))

    def rid_of(self, log_mass: float) -> GaussianMixtureLoss:
        """The same without outcomes of total probability about e^log_mass: for the last resort."""
        if self.flipped or self.trim is not None:
            return self
        return self.cut_at(np.maximum(self._quantile(log_mass), 0.5 + 0.5 * self.sigma))

    def _quantile(self, log_mass: float) -> Real:
        """Outcomes beyond which all steps together have a probability of about e^log_mass."""
        log_p = log_mass - np.log(self.count * len(self.rate)) - np.log(2.0)
        hit = np.minimum(log_p - np.log(self.rate), -1e-3)
        return np.asarray(np.maximum(-self.sigma * ndtri_exp(np.minimum(log_p, -1.0)), 1 - self.sigma * ndtri_exp(hit)))

    def cut_at(self, trim: Real) -> GaussianMixtureLoss:
        return GaussianMixtureLoss(self.rate, self.sigma, self.count, self.flipped, trim, self._log_beyond(trim))

    @property
    def tilt_limit(self) -> float:
        """Beyond this c the end of a trimmed row would weigh more than e^-28 in the sum."""
        if self.trim is None or self.log_beyond is None:
            return np.inf
        log_end = self.rows(1.0).log_ratio(self.trim[:, None])[2][:, 0]
        return float(np.min((-28.0 - np.log(self.count) - self.log_beyond) / np.maximum(log_end, 1e-300)))

    @property
    def tilt_guess(self) -> float:
        """Where the hits alone make K about 5: count q^(c+1) e^(c(c+1)/2sigma^2) = 5, a quadratic in c."""
        if self.flipped:
            return np.inf
        lead, log_q = 0.5 / self.sigma**2, np.log(self.rate)
        linear, constant = lead + log_q, log_q + np.log(self.count / 5)
        root = linear**2 - 4 * lead * constant
        guess = np.where(root > 0, 0.5 * (np.sqrt(np.maximum(root, 0.0)) - linear) / lead, np.inf)
        return float(np.where(guess > 0, guess, np.inf).min())

    def _log_beyond(self, y: Real) -> Real:
        """log P[outcome > y], rounded up."""
        none = np.log1p(-self.rate) + log_ndtr(-y / self.sigma)
        one = np.log(self.rate) + log_ndtr((1 - y) / self.sigma)
        value = np.logaddexp(none, one)
        return np.asarray(padded_up(value, 1e-12, 1 + np.abs(value)))

    def rows(self, c: float) -> Members:
        return self._some_rows(slice(None), c)

    def _some_rows(self, at: slice, c: float) -> Members:
        q, trim, beyond = self.rate[at], self.trim, self.log_beyond
        return Members(
            q,
            self.sigma[at],
            np.full_like(q, c),
            self.flipped,
            None if trim is None else trim[at],
            None if beyond is None else beyond[at],
        )

    def vertical(self, c: float) -> _Vertical:
        return _Vertical(self, c)

    @cached_property
    def means(self) -> tuple[Mean, Mean]:
        rows = Members(self.rate, self.sigma, np.zeros_like(self.rate), False, self.trim, self.log_beyond)
        return means(rows, np.log(1e-16 / self.count))

    @property
    def _mean(self) -> Mean:
        return self.means[1 if self.flipped else 0]

    def moments(self, c: float) -> tuple[float, float, float]:
        mean = self._mean
        if c == 0:
            return 0.0, float(self.count @ mean.value), float(self.count @ mean.variance)
        reach = 0 if self.trim is not None else math.ceil(math.log2(c))  # a trim ends all nodes
        if reach not in self._searched:
            self._searched[reach] = SearchNodes.up_to(self.rows(2.0**reach if self.trim is None else c))
        k, k1, k2 = self._searched[reach].moments(c, mean.value)
        return float(self.count @ k), float(self.count @ k1), float(self.count @ k2)

    def log_mgf_upper(self, c: Real) -> Real:
        return np.asarray(raised(self.rows_upper(c).sum(axis=1), len(self.rate)))

    def rows_upper(self, c: Real) -> Real:
        """Upper bounds on count * K, shape (len(c), bundle)."""
        n, most = len(self.rate), len(c)
        times = tiled(self.count, most)
        rows = Members(
            tiled(self.rate, most),
            tiled(self.sigma, most),
            np.repeat(c, n),
            self.flipped,
            None if self.trim is None else tiled(self.trim, most),
            None if self.log_beyond is None else tiled(self.log_beyond, most),
        )
        log_goal = np.log(1e-8 / times)
        grid = explicit_grid(rows, 0.0, log_goal, False) or majorant(rows).grid(0.0, log_goal, False)
        if grid.size * len(times) > _MAX_WORK:
            raise TooExpensive(f"{grid.size} quadrature nodes for each of {len(times)} points")
        each = times * upper(rows, grid, self._mean.tiled(most))
        return np.asarray(raised(each, 16, np.abs(each)).reshape(most, n))

    def log_mgf_simple_upper(self, c: Real) -> Real:
        """The smaller of two bounds: E_Q[r^(c+1)] <= (1 - q + q e^(c/2sigma^2))^(c+1) (Prop. rdp_subsampling_jensen;
        for Q against P by Thm. rdp_ss_flip, since a Gaussian pair has the same divergences in both directions); and
        1 + c(c+1)/2 times the majorant of `mixture_grid`, which knows of a trim."""
        q, sigma = self.rate[:, None], self.sigma[:, None]
        mean = np.logaddexp(np.log1p(-q), np.log(q) + 0.5 * c / sigma**2)
        jensen = (c + 1) * raised(mean, 16, 1 + np.abs(mean))
        taylor = np.empty_like(jensen)
        for j, point in enumerate(c):
            over = majorant(self.rows(float(point)))
            log_excess = np.log(0.5 * point * (point + 1)) + over.top + np.log(over.masses.sum(axis=1))
            log_excess = log_excess - np.log1p(4 / (1 - self.rate))  # no room for the mean is needed here
            taylor[:, j] = np.logaddexp(0.0, padded_up(log_excess, 1e-9, 1.0))
        return np.asarray(raised(self.count @ np.minimum(jensen, taylor), len(q)))

    def log_mgf_simple_lower(self, c: float) -> float:
        """E_Q[r^(c+1)] >= q^(c+1) E_Q[e^((c+1)s)], and never below 1; no such term for Q against P."""
        if self.flipped or self.trim is not None:
            return 0.0
        hits = (c + 1) * np.log(self.rate) + 0.5 * c * (c + 1) / self.sigma**2
        hits = lowered(hits, 16, (c + 1) * (1 - np.log(self.rate) + c / self.sigma**2))
        return lowered(float((self.count * np.maximum(hits, 0.0)).sum()), 4 + len(self.rate))

    def log_test_lower(self, eps: float) -> float:
        """The event "some step's loss exceeds z" for the best of many z: delta >= P(event) - e^eps Q(event)."""
        steps = float(self.count.sum())
        shares = np.concatenate([[0.0, 1 / steps], np.geomspace(1e-3, 4.0, 30), [1.0, 1.001]])
        return max(self._log_event(float(share * eps), eps) for share in shares)

    def _log_event(self, z: float, eps: float) -> float:
        """log of P(some Z > z) - e^eps Q(some Z > z), rounded down; -inf if not surely positive."""
        q, sigma, count = self.rate, self.sigma, self.count
        if self.flipped:  # -log r > z: r < e^-z, possible only if e^-z > 1 - q
            inside = 1 + np.expm1(-z) / q
            if np.any(inside <= 0):
                return -math.inf
            y = 0.5 + sigma**2 * np.log(inside)
            log_plain, log_shifted = log_ndtr(y / sigma), log_ndtr((y - 1) / sigma)
        else:
            rise = np.log1p(np.expm1(min(z, 600.0)) / q) if z <= 600 else z - np.log(q)
            y = 0.5 + sigma**2 * rise
            log_plain, log_shifted = log_ndtr(-y / sigma), log_ndtr((1 - y) / sigma)
        log_mixed = np.logaddexp(np.log1p(-q) + log_plain, np.log(q) + log_shifted)
        log_p, log_q = (log_plain, log_mixed) if self.flipped else (log_mixed, log_plain)
        log_p_event, log_q_event = _log_some(log_p, count), eps + _log_some(log_q, count)
        log_p_event = padded_down(log_p_event, 1e-9, 1 + abs(log_p_event))
        log_q_event = padded_up(log_q_event, 1e-9, 1 + abs(log_q_event))
        if not log_q_event < log_p_event:
            return -math.inf
        return log_p_event + math.log(-math.expm1(log_q_event - log_p_event))

    def hockey_stick(self, eps: float) -> tuple[float, float] | None:
        """One step, reduced to the plain Gaussian."""
        if self.count.sum() != 1:
            return None
        plain = GaussianLoss(float(self.sigma[0]) ** -2)
        return sampled_hockey_stick(float(self.rate[0]), plain.hockey_stick, eps, self.flipped)

    def mean_bounds(self) -> tuple[float, float]:
        own = self._mean
        mean, slack = float(self.count @ own.value), float(self.count @ own.error)
        slack += (16 + len(self.rate)) * UNIT * abs(mean) + math.exp(self.log_lost)
        return mean - slack, mean + slack

    def weakest(self) -> GaussianMixtureLoss:
        i = [int(np.argmax(self.rate / self.sigma))]
        return GaussianMixtureLoss(self.rate[i], self.sigma[i], np.ones(1), self.flipped)


def _one_use(rate: float, plain: Profile, flipped: bool) -> Profile:
    return lambda eps: sampled_hockey_stick(rate, plain, eps, flipped)


@dataclass(frozen=True, eq=False)
class _Vertical:
    """exp K on Re z = c."""

    loss: GaussianMixtureLoss
    c: float

    @cached_property
    def _majorant(self) -> Majorant:
        return majorant(self.loss.rows(self.c))

    @cached_property
    def _decay(self) -> Decay:
        rows = self.loss.rows(self.c)
        decay = Decay.on(rows, *quick_range(rows))
        if np.all(np.isfinite(decay.total_up)):
            return decay
        return decay.with_total(self.loss.rows_upper(np.array([self.c]))[0] / self.loss.count)

    def decay(self, t: float) -> float:
        return float((self.loss.count * self._decay.log_upper(t)).sum())

    def cells(self, start: float, width: float, count: int, enough: float) -> Real:
        return np.zeros(count)  # no claim: lines of mixtures are not sparse

    def line(self, t: Real, goal: float) -> LineValues:
        loss, c, n = self.loss, self.c, len(self.loss.rate)
        log_goal = np.log(goal / n) - np.log(loss.count)
        lifted = float(t[-1]) * np.pi / 2 > _LIFT_FROM and c > 0
        height = float(t[-1])
        grid = explicit_grid(loss.rows(c), height, log_goal, lifted) or self._majorant.grid(height, log_goal, lifted)
        if grid.size * n * len(t) > _MAX_WORK / (3 if len(t) > _LONG_LINE else 1):
            raise TooExpensive(f"{grid.size} quadrature nodes at each of {n * len(t)} points")
        charge(grid.size * n * (2 * math.sqrt(len(t)) + len(t) / 20))
        modulus, phase, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for at in _chunks(n, len(t), grid.size):
            k_re, k_im, k_err = read(loss._some_rows(at, c), grid.part(at), loss._mean.part(at), t)
            times = loss.count[at][:, None]
            modulus += (times * k_re).sum(axis=0)
            phase += (times * k_im).sum(axis=0)
            size = times * (np.abs(k_re) + np.abs(k_im))
            error += (times * k_err + (8 + n) * UNIT * size).sum(axis=0)
        return LineValues(modulus, phase, error)


def _log_some(log_each: Real, count: Real) -> float:
    """log of 1 - prod (1 - p)^count, to a relative 1e-9; the sum of count * p where that is tiny."""
    total = float(np.logaddexp.reduce(log_each + np.log(count)))
    if total < -25.0:
        return total
    with np.errstate(divide="ignore"):
        return math.log(-math.expm1(float((count * np.log1p(-np.exp(np.minimum(log_each, -1e-300)))).sum())))


def _chunks(rows: int, heights: int, size: int) -> Iterator[slice]:
    """Blocks of rows whose temporary arrays stay below _CHUNK elements."""
    each = max(1, _CHUNK // (heights + 2 * math.isqrt(heights) * size))
    for i in range(0, rows, each):
        yield slice(i, i + each)
