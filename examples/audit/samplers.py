"""Audit the noise samplers that people use: ``python examples/audit/samplers.py [--runs N]``.

NumPy's own Laplace noise always; OpenDP and diffprivlib where they are installed. Each is asked for noise with its own
claim on the neighbours 0 and 1, and floating point noise is looked at twice: its value, and its *low bits*. For noise L
added in floating point, 1 + L near 0 is a multiple of 2^-53 and 0 + L need not be (Mironov 2012): one look at the bits
tells the inputs apart, however much noise there is. Bins of values never see that.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import privloss as pl

EPSILON, DELTA = 1.0, 0.01


@dataclass(frozen=True)
class Sampler:
    """Noise that claims to be (epsilon, delta)-DP for inputs 0 and 1."""

    name: str
    release: Callable[..., object]
    claim: tuple[float, float] = (EPSILON, 0.0)
    planted: bool = False  # wrong on purpose


def low_bits(release: Callable[..., float]) -> Callable[..., str]:
    """Whether an output is a multiple of 2^-53: no more than post-processing."""

    def seen(x: float, rng: np.random.Generator) -> str:
        output = release(x, rng=rng)
        return "coarse" if math.ldexp(output, 53).is_integer() else "fine"

    return seen


def both(name: str, release: Callable[..., float], claim: tuple[float, float] = (EPSILON, 0.0)) -> Iterator[Sampler]:
    """The value, and its low bits."""
    yield Sampler(name, release, claim)
    yield Sampler(f"{name}, low bits", low_bits(release), claim)


def numpy_samplers() -> Iterator[Sampler]:
    """Noise as a first draft of a mechanism has it."""

    def geometric(x: float, rng: np.random.Generator) -> int:
        keep = 1 - math.exp(-EPSILON)
        return int(x) + int(rng.geometric(keep)) - int(rng.geometric(keep))

    yield from both("NumPy Laplace", lambda x, rng: float(x + rng.laplace(scale=1 / EPSILON)))
    yield Sampler("NumPy two-sided geometric", geometric)
    yield Sampler("planted: scale halved", lambda x, rng: float(x + rng.laplace(scale=0.5 / EPSILON)), planted=True)
    yield Sampler(
        "planted: noise truncated at 3", lambda x, rng: float(x + np.clip(rng.laplace(), -3.0, 3.0)), planted=True
    )
    yield Sampler(
        "planted: noise rounded instead of the sum", lambda x, rng: x / 2 + round(rng.laplace()), planted=True
    )


def opendp_samplers() -> Iterator[Sampler]:
    """Exact samplers on integers and floats; what they claim is asked of them."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    floats = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    laplace, discrete = dp.m.make_laplace(*floats, scale=1.0), dp.m.make_laplace(*whole, scale=1.0)
    yield from both("OpenDP laplace (float)", lambda x, rng: laplace(float(x)), (laplace.map(1.0), 0.0))
    yield Sampler("OpenDP laplace (int)", lambda x: discrete(int(x)), (discrete.map(1), 0.0))
    normal, lattice = dp.m.make_gaussian(*floats, scale=2.0), dp.m.make_gaussian(*whole, scale=2.0)
    claim = (pl.Gaussian(sigma=2.0).epsilon(DELTA).upper, DELTA)
    yield from both("OpenDP gaussian (float)", lambda x, rng: normal(float(x)), claim)
    # on integers the exact curve of the discrete Gaussian is the claim, through rho = 1/(2 sigma^2)
    yield Sampler(
        "OpenDP gaussian (int)", lambda x: lattice(int(x)), (pl.ZCDP(lattice.map(1)).epsilon(DELTA).upper, DELTA)
    )


def diffprivlib_samplers() -> Iterator[Sampler]:
    """Their noise draws from the system's source of randomness unless told otherwise."""
    from diffprivlib import mechanisms

    pure, approx = {"epsilon": EPSILON, "sensitivity": 1}, {"epsilon": EPSILON, "delta": DELTA, "sensitivity": 1}
    laplace, normal = mechanisms.Laplace(**pure), mechanisms.GaussianAnalytic(**approx)
    geometric, lattice = mechanisms.Geometric(**pure), mechanisms.GaussianDiscrete(**approx)
    snapping = mechanisms.Snapping(**pure, lower=-10.0, upper=10.0)
    yield from both("diffprivlib Laplace", lambda x, rng: laplace.randomise(float(x)))
    yield from both("diffprivlib Snapping", lambda x, rng: snapping.randomise(float(x)))
    yield Sampler("diffprivlib Geometric", lambda x: geometric.randomise(int(x)))
    yield from both("diffprivlib GaussianAnalytic", lambda x, rng: normal.randomise(float(x)), (EPSILON, DELTA))
    yield Sampler("diffprivlib GaussianDiscrete", lambda x: lattice.randomise(int(x)), (EPSILON, DELTA))


def samplers() -> Iterator[Sampler]:
    """All that can be run here."""
    yield from numpy_samplers()
    for package, found in (("opendp", opendp_samplers), ("diffprivlib", diffprivlib_samplers)):
        if importlib.util.find_spec(package) is not None:
            yield from found()


def audit(sampler: Sampler, runs: int, alpha: float, seed: int = 1) -> pl.audit.Audit:
    """Of the sampler's own claim, on the inputs 0 and 1."""
    delta = sampler.claim[1]
    return pl.audit.mechanism(
        sampler.release, 0.0, 1.0, runs=runs, delta=delta, seed=seed, alpha=alpha, claim=sampler.claim
    )


def main() -> None:
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    table = Table("sampler", "claimed", "epsilon, at least", "ceiling", "p", "verdict")
    every = list(samplers())
    for each in every:  # one false alarm rate for the whole table
        found, (epsilon, delta) = audit(each, runs, 0.05 / len(every)), each.claim
        numbers = (f"{epsilon:.4g}, {delta:g}", f"{found.epsilon:.3f}", f"{found.ceiling:.3f}", f"{found.p_value:.2g}")
        table.add_row(each.name, *numbers, found.verdict)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
