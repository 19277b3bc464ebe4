"""privloss: what have we promised, exactly?

>>> import privloss as pl
>>> sgd = pl.Gaussian(noise_multiplier=1.1).poisson(0.01) * 10_000
>>> sgd.epsilon(delta=1e-6)
Bound(5.80693502656..., 5.80693502656...)
>>> pl.composition.optimal_epsilon(0.1, count=100, delta=1e-6)
Bound(4.774567588107..., 4.774567588108...)

Every name below is loaded when first used, so that `privloss --version` and the ledger start without NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privloss import audit as audit
    from privloss.answers import estimate as estimate
    from privloss.answers.parallel import parallel as parallel
    from privloss.certificates.certificate import Certificate as Certificate
    from privloss.certificates.certificate import certify as certify
    from privloss.certificates.certificate import verify as verify
    from privloss.certificates.selfcheck import selfcheck as selfcheck
    from privloss.errors import InvalidInput as InvalidInput
    from privloss.errors import InvalidPlan as InvalidPlan
    from privloss.errors import MissingExtra as MissingExtra
    from privloss.errors import PrivlossError as PrivlossError
    from privloss.errors import Unreachable as Unreachable
    from privloss.errors import Unsupported as Unsupported
    from privloss.ledger import odometers as odometers
    from privloss.ledger.ledger import AlreadySpentError as AlreadySpentError
    from privloss.ledger.ledger import Ledger as Ledger
    from privloss.ledger.ledger import RefusedError as RefusedError
    from privloss.losses.step import Step as Step
    from privloss.mechanisms import parameters as parameters
    from privloss.mechanisms.approx_dp import ApproxDP as ApproxDP
    from privloss.mechanisms.base import Mechanism as Mechanism
    from privloss.mechanisms.base import Plan as Plan
    from privloss.mechanisms.base import Sampled as Sampled
    from privloss.mechanisms.custom import Custom as Custom
    from privloss.mechanisms.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
    from privloss.mechanisms.discrete_laplace import DiscreteLaplace as DiscreteLaplace
    from privloss.mechanisms.exponential import Exponential as Exponential
    from privloss.mechanisms.gaussian import Gaussian as Gaussian
    from privloss.mechanisms.gdp import GDP as GDP
    from privloss.mechanisms.kinds import Kind as Kind
    from privloss.mechanisms.laplace import Laplace as Laplace
    from privloss.mechanisms.noisy_max import NoisyMax as NoisyMax
    from privloss.mechanisms.privacy_profile import PrivacyProfile as PrivacyProfile
    from privloss.mechanisms.pure_dp import PureDP as PureDP
    from privloss.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
    from privloss.mechanisms.rdp import RDP as RDP
    from privloss.mechanisms.register import register as register
    from privloss.mechanisms.samplers.batches import FixedSize as FixedSize
    from privloss.mechanisms.samplers.batches import WithReplacement as WithReplacement
    from privloss.mechanisms.samplers.epochs import Allocated as Allocated
    from privloss.mechanisms.samplers.epochs import Shuffled as Shuffled
    from privloss.mechanisms.samplers.poisson import PoissonSampled as PoissonSampled
    from privloss.mechanisms.samplers.truncated_poisson import TruncatedPoisson as TruncatedPoisson
    from privloss.mechanisms.tabulated import Tabulated as Tabulated
    from privloss.mechanisms.tabulated import tabulate as tabulate
    from privloss.mechanisms.tabulated import tabulate_densities as tabulate_densities
    from privloss.mechanisms.trade_off import TradeOff as TradeOff
    from privloss.mechanisms.truncated_gaussian import TruncatedGaussian as TruncatedGaussian
    from privloss.mechanisms.truncated_laplace import TruncatedLaplace as TruncatedLaplace
    from privloss.mechanisms.unary_encoding import UnaryEncoding as UnaryEncoding
    from privloss.mechanisms.zcdp import ZCDP as ZCDP
    from privloss.numerics.bound import Bound as Bound
    from privloss.numerics.bound import Bounds as Bounds
    from privloss.planning.accountant import Accountant as Accountant
    from privloss.planning.allocate import allocate as allocate
    from privloss.planning.calibrate import calibrate as calibrate
    from privloss.planning.dp_sgd import dp_sgd as dp_sgd
    from privloss.planning.sweep import sweep as sweep
    from privloss.theorems import composition as composition
    from privloss.theorems import conversion as conversion
    from privloss.theorems import group as group
    from privloss.theorems import limits as limits
    from privloss.theorems import pipelines as pipelines
    from privloss.theorems import shuffling as shuffling
    from privloss.theorems import subsampling as subsampling
    from privloss.theorems import tracing as tracing
    from privloss.theorems.pairs.discrete import DiscretePair as DiscretePair
    from privloss.theorems.pairs.smooth import DensityPair as DensityPair
    from privloss.theorems.pairs.smooth import GaussianPair as GaussianPair

__version__ = "0.3.0"

_HOMES = {
    "answers.parallel": ("parallel",),
    "certificates.certificate": (
        "Certificate",
        "certify",
        "verify",
    ),
    "certificates.selfcheck": ("selfcheck",),
    "errors": (
        "InvalidInput",
        "InvalidPlan",
        "MissingExtra",
        "PrivlossError",
        "Unreachable",
        "Unsupported",
    ),
    "ledger.ledger": (
        "AlreadySpentError",
        "Ledger",
        "RefusedError",
    ),
    "losses.step": ("Step",),
    "mechanisms.approx_dp": ("ApproxDP",),
    "mechanisms.base": (
        "Mechanism",
        "Plan",
        "Sampled",
    ),
    "mechanisms.custom": ("Custom",),
    "mechanisms.discrete_gaussian": ("DiscreteGaussian",),
    "mechanisms.discrete_laplace": ("DiscreteLaplace",),
    "mechanisms.exponential": ("Exponential",),
    "mechanisms.gaussian": ("Gaussian",),
    "mechanisms.gdp": ("GDP",),
    "mechanisms.kinds": ("Kind",),
    "mechanisms.laplace": ("Laplace",),
    "mechanisms.noisy_max": ("NoisyMax",),
    "mechanisms.privacy_profile": ("PrivacyProfile",),
    "mechanisms.pure_dp": ("PureDP",),
    "mechanisms.randomized_response": ("RandomizedResponse",),
    "mechanisms.rdp": ("RDP",),
    "mechanisms.register": ("register",),
    "mechanisms.samplers.batches": (
        "FixedSize",
        "WithReplacement",
    ),
    "mechanisms.samplers.epochs": (
        "Allocated",
        "Shuffled",
    ),
    "mechanisms.samplers.poisson": ("PoissonSampled",),
    "mechanisms.samplers.truncated_poisson": ("TruncatedPoisson",),
    "mechanisms.tabulated": (
        "Tabulated",
        "tabulate",
        "tabulate_densities",
    ),
    "mechanisms.trade_off": ("TradeOff",),
    "mechanisms.truncated_gaussian": ("TruncatedGaussian",),
    "mechanisms.truncated_laplace": ("TruncatedLaplace",),
    "mechanisms.unary_encoding": ("UnaryEncoding",),
    "mechanisms.zcdp": ("ZCDP",),
    "numerics.bound": (
        "Bound",
        "Bounds",
    ),
    "planning.accountant": ("Accountant",),
    "planning.allocate": ("allocate",),
    "planning.calibrate": ("calibrate",),
    "planning.dp_sgd": ("dp_sgd",),
    "planning.sweep": ("sweep",),
    "theorems.pairs.discrete": ("DiscretePair",),
    "theorems.pairs.smooth": (
        "DensityPair",
        "GaussianPair",
    ),
}
_MODULES = {
    "audit": "audit",
    "composition": "theorems.composition",
    "conversion": "theorems.conversion",
    "estimate": "answers.estimate",
    "group": "theorems.group",
    "limits": "theorems.limits",
    "odometers": "ledger.odometers",
    "parameters": "mechanisms.parameters",
    "pipelines": "theorems.pipelines",
    "shuffling": "theorems.shuffling",
    "subsampling": "theorems.subsampling",
    "tracing": "theorems.tracing",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "Accountant",
    "Allocated",
    "AlreadySpentError",
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
    "Kind",
    "Laplace",
    "Ledger",
    "Mechanism",
    "MissingExtra",
    "NoisyMax",
    "Plan",
    "PoissonSampled",
    "PrivacyProfile",
    "PrivlossError",
    "PureDP",
    "RandomizedResponse",
    "RefusedError",
    "Sampled",
    "Shuffled",
    "Step",
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
    "audit",
    "calibrate",
    "certify",
    "composition",
    "conversion",
    "dp_sgd",
    "estimate",
    "group",
    "limits",
    "odometers",
    "parallel",
    "parameters",
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


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"privloss.{_MODULES[name]}")
    if name in _HOME:
        return getattr(import_module(f"privloss.{_HOME[name]}"), name)
    raise AttributeError(f"module 'privloss' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
