"""privloss: what have we promised, exactly?

>>> import privloss as pl
>>> sgd = pl.Gaussian(noise_multiplier=1.1).poisson(0.01) * 10_000
>>> sgd.epsilon(delta=1e-6)
Bound(5.80693502656..., 5.80693502656...)
>>> pl.composition.optimal_epsilon(0.1, count=100, delta=1e-6)
Bound(4.774567588107..., 4.774567588108...)
"""

from importlib import import_module
from typing import Any

from privloss.errors import InvalidInput, InvalidPlan, MissingExtra, PrivlossError, Unsupported
from privloss.mechanisms.black_box import GDP, RDP, ZCDP, ApproxDP, PureDP
from privloss.mechanisms.custom import Custom, PrivacyProfile, Tabulated, TradeOff
from privloss.mechanisms.discrete_gaussian import DiscreteGaussian
from privloss.mechanisms.discrete_laplace import DiscreteLaplace
from privloss.mechanisms.exponential import Exponential, NoisyMax
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.plan import Plan
from privloss.mechanisms.randomized_response import RandomizedResponse
from privloss.mechanisms.sampling import PoissonSampled
from privloss.mechanisms.truncated import TruncatedGaussian, TruncatedLaplace
from privloss.mechanisms.unary_encoding import UnaryEncoding
from privloss.numerics.bound import Bound, Bounds

__version__ = "0.1.0"

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "Bound",
    "Bounds",
    "Custom",
    "DensityPair",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscretePair",
    "Exponential",
    "Gaussian",
    "GaussianPair",
    "InvalidInput",
    "InvalidPlan",
    "Laplace",
    "MissingExtra",
    "NoisyMax",
    "Plan",
    "PoissonSampled",
    "PrivacyProfile",
    "PrivlossError",
    "PureDP",
    "RandomizedResponse",
    "Tabulated",
    "TradeOff",
    "TruncatedGaussian",
    "TruncatedLaplace",
    "UnaryEncoding",
    "Unsupported",
    "__version__",
    "composition",
    "conversion",
    "estimate",
    "group",
    "limits",
    "pipelines",
    "register",
    "shuffling",
    "subsampling",
    "tabulate",
    "tabulate_densities",
    "tracing",
]

_MODULES = (
    "composition",
    "conversion",
    "estimate",
    "group",
    "limits",
    "pipelines",
    "shuffling",
    "subsampling",
    "tracing",
)
_PAIRS = {
    "DiscretePair": "discrete_pair",
    "GaussianPair": "smooth_pair",
    "DensityPair": "smooth_pair",
    "tabulate": "tabulate",
    "tabulate_densities": "tabulate",
    "register": "dominate",
}


def __getattr__(name: str) -> Any:
    """The chapter's theorems by topic, and pairs of distributions, loaded when first asked for."""
    if name in _MODULES:
        return import_module(f"privloss.guarantees.{name}")
    if name in _PAIRS:
        return getattr(import_module(f"privloss.losses.{_PAIRS[name]}"), name)
    raise AttributeError(f"module 'privloss' has no attribute {name!r}")
