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

from privloss.errors import InvalidInput, InvalidPlan, MissingExtra, PrivlossError, Unreachable, Unsupported
from privloss.mechanisms.black_box import GDP, RDP, ZCDP, ApproxDP, PureDP
from privloss.mechanisms.custom import Custom, PrivacyProfile, Tabulated, TradeOff
from privloss.mechanisms.discrete_gaussian import DiscreteGaussian
from privloss.mechanisms.discrete_laplace import DiscreteLaplace
from privloss.mechanisms.exponential import Exponential, NoisyMax
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.plan import Plan
from privloss.mechanisms.randomized_response import RandomizedResponse
from privloss.mechanisms.sampling import (
    Allocated,
    FixedSize,
    PoissonSampled,
    Shuffled,
    TruncatedPoisson,
    WithReplacement,
)
from privloss.mechanisms.truncated import TruncatedGaussian, TruncatedLaplace
from privloss.mechanisms.unary_encoding import UnaryEncoding
from privloss.numerics.bound import Bound, Bounds

__version__ = "0.1.0"

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "Accountant",
    "Allocated",
    "ApproxDP",
    "Bound",
    "Bounds",
    "Certificate",
    "Custom",
    "DensityPair",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscretePair",
    "Exponential",
    "FixedSize",
    "Gaussian",
    "GaussianPair",
    "InvalidInput",
    "InvalidPlan",
    "Laplace",
    "Ledger",
    "MissingExtra",
    "NoisyMax",
    "Plan",
    "PoissonSampled",
    "PrivacyProfile",
    "PrivlossError",
    "PureDP",
    "RandomizedResponse",
    "Shuffled",
    "Tabulated",
    "TradeOff",
    "TruncatedGaussian",
    "TruncatedLaplace",
    "TruncatedPoisson",
    "UnaryEncoding",
    "Unreachable",
    "Unsupported",
    "WithReplacement",
    "__version__",
    "allocate",
    "calibrate",
    "certify",
    "composition",
    "conversion",
    "dp_sgd",
    "estimate",
    "group",
    "limits",
    "parallel",
    "pipelines",
    "register",
    "selfcheck",
    "shuffling",
    "subsampling",
    "sweep",
    "tabulate",
    "tabulate_densities",
    "tracing",
    "verify",
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
_LATE = {
    "DiscretePair": "losses.discrete_pair",
    "GaussianPair": "losses.smooth_pair",
    "DensityPair": "losses.smooth_pair",
    "tabulate": "losses.tabulate",
    "tabulate_densities": "losses.tabulate",
    "register": "losses.dominate",
    "parallel": "guarantees.parallel",
    "Certificate": "guarantees.certificates.certificate",
    "certify": "guarantees.certificates.certificate",
    "verify": "guarantees.certificates.certificate",
    "selfcheck": "guarantees.certificates.selfcheck",
    "Ledger": "budget.ledger",
    "Accountant": "planning.accountant",
    "allocate": "planning.allocate",
    "calibrate": "planning.calibrate",
    "dp_sgd": "planning.dp_sgd",
    "sweep": "planning.sweep",
}


def __getattr__(name: str) -> Any:
    """The chapter's theorems by topic, pairs of distributions and planning, loaded when first asked for."""
    if name in _MODULES:
        return import_module(f"privloss.guarantees.{name}")
    if name in _LATE:
        return getattr(import_module(f"privloss.{_LATE[name]}"), name)
    raise AttributeError(f"module 'privloss' has no attribute {name!r}")
