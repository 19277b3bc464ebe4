"""The accountants of the papers that the chapter cites, as plainly as possible, for `bench.papers`."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

import privloss as pl

SIGMA, RATE, STEPS, DELTA = 1.1, 0.01, 10_000, 1e-6
BOXES, EACH = 100, 0.1
_WINDOW, _GRID = 20.0, 2**18  # of the Fourier accountants


def sgd() -> pl.Plan:
    return pl.Gaussian(noise_multiplier=SIGMA).poisson(RATE) * STEPS


def hundred() -> pl.Plan:
    return pl.PureDP(EACH) * BOXES


def moments_accountant() -> float:
    """Whole orders up to 32, simple conversion: Abadi et al. 2016."""
    curve = [STEPS * pl.subsampling.renyi_poisson(a, RATE, lambda k: k / (2 * SIGMA**2)) for a in range(2, 33)]
    return float(pl.conversion.renyi_to_epsilon(list(range(2, 33)), curve, delta=DELTA, form="simple"))


def _cell_masses(edges: np.ndarray, shift: float) -> np.ndarray:
    """P[Z in cell] for the sampled Gaussian, Z = log(1 - q + q e^((2y-1)/(2 sigma^2))), y ~ N(shift, sigma^2)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        y = np.where(
            np.exp(edges) > 1 - RATE,
            SIGMA**2 * np.log(np.maximum(np.expm1(edges) + RATE, 1e-300) / RATE) + 0.5,
            -np.inf,
        )
    return np.diff(ndtr((y - shift) / SIGMA))


def _composed(offset: float, masses: np.ndarray, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Losses and masses after STEPS convolutions on a periodic window."""
    folded = np.roll(masses, -_GRID // 2)
    total = np.fft.irfft(np.fft.rfft(folded) ** STEPS, _GRID)
    values = (np.arange(_GRID) - _GRID // 2) * step
    # the shift of all cells by `offset` adds up; it is folded back into the window
    return values + STEPS * offset, np.roll(total, _GRID // 2)


def _epsilon_of(values: np.ndarray, masses: np.ndarray) -> float:
    def excess(eps: float) -> float:
        return float(np.sum(masses * np.maximum(-np.expm1(eps - values), 0.0))) - DELTA

    return float(brentq(excess, 0.0, _WINDOW / 2))


def fourier_accountant() -> float:
    """Koskela, Jalko, Honkela 2020: the density of the loss on a grid, FFT, no rounding of losses."""
    step = 2 * _WINDOW / _GRID
    edges = (np.arange(_GRID + 1) - _GRID // 2 - 0.5) * step
    masses = (1 - RATE) * _cell_masses(edges, 0.0) + RATE * _cell_masses(edges, 1.0)
    return _epsilon_of(*_composed(0.0, masses, step))


def fourier_upper() -> float:
    """Koskela et al. 2021: losses rounded up to the grid, so that the result is an upper bound up to its tails."""
    step = 2 * _WINDOW / _GRID
    edges = (np.arange(_GRID + 1) - _GRID // 2 - 1.0) * step
    masses = (1 - RATE) * _cell_masses(edges, 0.0) + RATE * _cell_masses(edges, 1.0)
    return _epsilon_of(*_composed(0.0, masses, step))


def prv() -> float:
    """Gopi, Lee, Wutschitz 2021, their package."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    member = PoissonSubsampledGaussianMechanism(noise_multiplier=SIGMA, sampling_probability=RATE)
    accountant = PRVAccountant(prvs=[member], max_self_compositions=[STEPS], eps_error=0.01, delta_error=DELTA / 1000)
    return float(accountant.compute_epsilon(delta=DELTA, num_self_compositions=[STEPS])[2])


def connect_the_dots() -> float:
    """Doroshenko et al. 2022, in dp-accounting."""
    import dp_accounting as dp

    found = dp.pld.privacy_loss_distribution.from_gaussian_mechanism(
        SIGMA, sampling_prob=RATE, value_discretization_interval=1e-4, use_connect_dots=True
    )
    return float(found.self_compose(STEPS).get_epsilon_for_delta(DELTA))


def characteristic_function() -> float:
    """Zhu, Dong, Wang 2022: phi by quadrature, tails by Levy's inversion on the imaginary axis."""
    nodes, weights = np.polynomial.legendre.leggauss(600)
    y = 0.5 + 12 * nodes
    loss = np.log1p(RATE * np.expm1((2 * y - 1) / (2 * SIGMA**2)))
    under_q = 12 * weights * np.exp(-0.5 * (y / SIGMA) ** 2) / (SIGMA * math.sqrt(2 * math.pi))
    over = under_q * np.exp(loss)
    # both sums must be 1 to the last digit: the 10 000th power shows what is missing
    under_q, under_p = under_q / under_q.sum(), over / over.sum()
    t = (np.arange(4000) + 0.5) * 0.01
    phi = np.exp(1j * t[:, None] * loss)
    under_q_t, under_p_t = (phi @ under_q) ** STEPS, (phi @ under_p) ** STEPS

    def tail(values: np.ndarray, eps: float) -> float:
        return 0.5 + float(np.sum(np.imag(np.exp(-1j * t * eps) * values) / t)) * 0.01 / math.pi

    return float(brentq(lambda e: tail(under_p_t, e) - math.exp(e) * tail(under_q_t, e) - DELTA, 1.0, 9.0, xtol=1e-9))


def gaussian_limit() -> float:
    """Dong, Roth, Su 2019: the mu of the limit of a hundred randomised responses, then the curve of Gaussian noise."""
    likely = 1 / (1 + math.exp(-EACH))
    coin = pl.DiscretePair([likely, 1 - likely], [1 - likely, likely])
    return float(pl.GDP(pl.central_limit.gdp_mu(coin, count=BOXES)).epsilon(DELTA).upper)


def printed_formula() -> float:
    """Kairouz, Oh, Viswanath 2015: the sum over all 101 losses, and a root."""
    e = math.exp(EACH)
    hits = np.arange(BOXES + 1)
    logs = np.array([math.lgamma(BOXES + 1) - math.lgamma(i + 1) - math.lgamma(BOXES - i + 1) for i in hits])
    weights = np.exp(logs + hits * EACH - BOXES * math.log1p(e))
    losses = (2 * hits - BOXES) * EACH
    return float(brentq(lambda x: np.sum(weights * np.maximum(-np.expm1(x - losses), 0)) - DELTA, 0.0, BOXES * EACH))


def from_one_order() -> float:
    """Asoodeh et al. 2020: the optimal conversion at every order of the same curve."""
    return pl.pipelines.through_renyi_dp(SIGMA, RATE, STEPS, DELTA)


def rounded_boxes() -> float:
    """Murtagh, Vadhan 2016: losses rounded up to multiples of 0.01/k, then a table of sums."""
    grid = 0.01 / BOXES
    each = math.ceil(EACH / grid)
    likely = 1 / (1 + math.exp(-each * grid))
    total = np.array([1.0])
    for _ in range(BOXES):
        total = np.append(total * likely, 0.0) + np.insert(total * (1 - likely), 0, 0.0)
    losses = (BOXES - 2 * np.arange(BOXES + 1)) * each * grid
    return float(brentq(lambda x: np.sum(total * np.maximum(-np.expm1(x - losses), 0)) - DELTA, 0.0, 20.0))


def odometer() -> float:
    """Rogers et al. 2016, in zCDP: a reading that is valid at any stopping time."""
    from fractions import Fraction

    spent = Fraction(BOXES) * Fraction(EACH) ** 2 / 2
    return float(pl.odometers.odometer("zcdp", {"rho": spent}, delta=DELTA).epsilon)


def zcdp_filter() -> float:
    """Feldman, Zrnic 2021: the sum of rhos, converted."""
    rho = pl.composition.zcdp(pl.conversion.pure_to_zcdp_exact(EACH), count=BOXES)
    return float(pl.conversion.zcdp_to_epsilon(rho, delta=DELTA))


def optimal_boxes() -> float:
    return float(pl.composition.optimal_epsilon(EACH, count=BOXES, delta=DELTA).upper)
