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
    from privloss.answers import tradeoff as tradeoff
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
    from privloss.mechanisms.above_threshold import AboveThreshold as AboveThreshold
    from privloss.mechanisms.approx_dp import ApproxDP as ApproxDP
    from privloss.mechanisms.base import Mechanism as Mechanism
    from privloss.mechanisms.base import Plan as Plan
    from privloss.mechanisms.base import Sampled as Sampled
    from privloss.mechanisms.custom import Custom as Custom
    from privloss.mechanisms.discrete_gaussian import DiscreteGaussian as DiscreteGaussian
    from privloss.mechanisms.discrete_laplace import DiscreteLaplace as DiscreteLaplace
    from privloss.mechanisms.discrete_laplace import Geometric as Geometric
    from privloss.mechanisms.distance_test import DistanceTest as DistanceTest
    from privloss.mechanisms.distance_test import propose_test_release as propose_test_release
    from privloss.mechanisms.exponential import Exponential as Exponential
    from privloss.mechanisms.gaussian import Gaussian as Gaussian
    from privloss.mechanisms.gaussian_mixture import GaussianMixture as GaussianMixture
    from privloss.mechanisms.gdp import GDP as GDP
    from privloss.mechanisms.gnmax import GNMax as GNMax
    from privloss.mechanisms.gnmax import confident_gnmax as confident_gnmax
    from privloss.mechanisms.kinds import Kind as Kind
    from privloss.mechanisms.laplace import Laplace as Laplace
    from privloss.mechanisms.matrix_mechanism import MatrixMechanism as MatrixMechanism
    from privloss.mechanisms.noisy_max import NoisyMax as NoisyMax
    from privloss.mechanisms.noisy_threshold import NoisyThreshold as NoisyThreshold
    from privloss.mechanisms.permute_and_flip import PermuteAndFlip as PermuteAndFlip
    from privloss.mechanisms.privacy_profile import PrivacyProfile as PrivacyProfile
    from privloss.mechanisms.pure_dp import PureDP as PureDP
    from privloss.mechanisms.quantile import Quantile as Quantile
    from privloss.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
    from privloss.mechanisms.rdp import RDP as RDP
    from privloss.mechanisms.register import register as register
    from privloss.mechanisms.samplers.batches import FixedSize as FixedSize
    from privloss.mechanisms.samplers.batches import WithReplacement as WithReplacement
    from privloss.mechanisms.samplers.epochs import Allocated as Allocated
    from privloss.mechanisms.samplers.epochs import Shuffled as Shuffled
    from privloss.mechanisms.samplers.poisson import PoissonSampled as PoissonSampled
    from privloss.mechanisms.samplers.truncated_poisson import TruncatedPoisson as TruncatedPoisson
    from privloss.mechanisms.select_best import SelectBest as SelectBest
    from privloss.mechanisms.select_best import select_best as select_best
    from privloss.mechanisms.smooth_sensitivity import SmoothSensitivity as SmoothSensitivity
    from privloss.mechanisms.stability_histogram import StabilityHistogram as StabilityHistogram
    from privloss.mechanisms.tabulated import Tabulated as Tabulated
    from privloss.mechanisms.tabulated import tabulate as tabulate
    from privloss.mechanisms.tabulated import tabulate_densities as tabulate_densities
    from privloss.mechanisms.together import Together as Together
    from privloss.mechanisms.together import together as together
    from privloss.mechanisms.top_k import TopK as TopK
    from privloss.mechanisms.trade_off import TradeOff as TradeOff
    from privloss.mechanisms.tree import TreeAggregation as TreeAggregation
    from privloss.mechanisms.truncated_cdp import TruncatedCDP as TruncatedCDP
    from privloss.mechanisms.truncated_gaussian import TruncatedGaussian as TruncatedGaussian
    from privloss.mechanisms.truncated_laplace import TruncatedLaplace as TruncatedLaplace
    from privloss.mechanisms.unary_encoding import UnaryEncoding as UnaryEncoding
    from privloss.mechanisms.zcdp import ZCDP as ZCDP
    from privloss.numerics.bound import Bound as Bound
    from privloss.numerics.bound import Bounds as Bounds
    from privloss.planning.accountant import Accountant as Accountant
    from privloss.planning.adaptive_clipping import adaptive_clipping as adaptive_clipping
    from privloss.planning.allocate import allocate as allocate
    from privloss.planning.calibrate import calibrate as calibrate
    from privloss.planning.dp_ftrl import dp_ftrl as dp_ftrl
    from privloss.planning.dp_sgd import dp_sgd as dp_sgd
    from privloss.planning.sweep import sweep as sweep
    from privloss.theorems import central_limit as central_limit
    from privloss.theorems import composition as composition
    from privloss.theorems import conversion as conversion
    from privloss.theorems import figures as figures
    from privloss.theorems import gaussian_dp as gaussian_dp
    from privloss.theorems import group as group
    from privloss.theorems import inequalities as inequalities
    from privloss.theorems import limits as limits
    from privloss.theorems import optimal_conversion as optimal_conversion
    from privloss.theorems import pipelines as pipelines
    from privloss.theorems import remarks as remarks
    from privloss.theorems import saddle_point as saddle_point
    from privloss.theorems import shuffling as shuffling
    from privloss.theorems import subsampling as subsampling
    from privloss.theorems import tracing as tracing
    from privloss.theorems.compare import compare as compare
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
    "mechanisms.above_threshold": ("AboveThreshold",),
    "mechanisms.approx_dp": ("ApproxDP",),
    "mechanisms.base": (
        "Mechanism",
        "Plan",
        "Sampled",
    ),
    "mechanisms.custom": ("Custom",),
    "mechanisms.discrete_gaussian": ("DiscreteGaussian",),
    "mechanisms.discrete_laplace": (
        "DiscreteLaplace",
        "Geometric",
    ),
    "mechanisms.distance_test": ("DistanceTest", "propose_test_release"),
    "mechanisms.exponential": ("Exponential",),
    "mechanisms.gaussian": ("Gaussian",),
    "mechanisms.gaussian_mixture": ("GaussianMixture",),
    "mechanisms.gdp": ("GDP",),
    "mechanisms.gnmax": ("GNMax", "confident_gnmax"),
    "mechanisms.kinds": ("Kind",),
    "mechanisms.laplace": ("Laplace",),
    "mechanisms.matrix_mechanism": ("MatrixMechanism",),
    "mechanisms.noisy_max": ("NoisyMax",),
    "mechanisms.permute_and_flip": ("PermuteAndFlip",),
    "mechanisms.noisy_threshold": ("NoisyThreshold",),
    "mechanisms.privacy_profile": ("PrivacyProfile",),
    "mechanisms.pure_dp": ("PureDP",),
    "mechanisms.quantile": ("Quantile",),
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
    "mechanisms.select_best": (
        "SelectBest",
        "select_best",
    ),
    "mechanisms.smooth_sensitivity": ("SmoothSensitivity",),
    "mechanisms.stability_histogram": ("StabilityHistogram",),
    "mechanisms.tabulated": (
        "Tabulated",
        "tabulate",
        "tabulate_densities",
    ),
    "mechanisms.together": (
        "Together",
        "together",
    ),
    "mechanisms.top_k": ("TopK",),
    "mechanisms.trade_off": ("TradeOff",),
    "mechanisms.truncated_cdp": ("TruncatedCDP",),
    "mechanisms.tree": ("TreeAggregation",),
    "mechanisms.truncated_gaussian": ("TruncatedGaussian",),
    "mechanisms.truncated_laplace": ("TruncatedLaplace",),
    "mechanisms.unary_encoding": ("UnaryEncoding",),
    "mechanisms.zcdp": ("ZCDP",),
    "numerics.bound": (
        "Bound",
        "Bounds",
    ),
    "planning.accountant": ("Accountant",),
    "planning.adaptive_clipping": ("adaptive_clipping",),
    "planning.allocate": ("allocate",),
    "planning.calibrate": ("calibrate",),
    "planning.dp_ftrl": ("dp_ftrl",),
    "planning.dp_sgd": ("dp_sgd",),
    "planning.sweep": ("sweep",),
    "theorems.compare": ("compare",),
    "theorems.pairs.discrete": ("DiscretePair",),
    "theorems.pairs.smooth": (
        "DensityPair",
        "GaussianPair",
    ),
}
_MODULES = {
    "central_limit": "theorems.central_limit",
    "audit": "audit",
    "composition": "theorems.composition",
    "conversion": "theorems.conversion",
    "estimate": "answers.estimate",
    "figures": "theorems.figures",
    "gaussian_dp": "theorems.gaussian_dp",
    "group": "theorems.group",
    "inequalities": "theorems.inequalities",
    "limits": "theorems.limits",
    "odometers": "ledger.odometers",
    "optimal_conversion": "theorems.optimal_conversion",
    "parameters": "mechanisms.parameters",
    "pipelines": "theorems.pipelines",
    "remarks": "theorems.remarks",
    "saddle_point": "theorems.saddle_point",
    "shuffling": "theorems.shuffling",
    "subsampling": "theorems.subsampling",
    "tracing": "theorems.tracing",
    "tradeoff": "answers.tradeoff",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "AboveThreshold",
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
    "DistanceTest",
    "Exponential",
    "FixedSize",
    "GNMax",
    "Gaussian",
    "GaussianMixture",
    "GaussianPair",
    "Geometric",
    "InvalidInput",
    "InvalidPlan",
    "Kind",
    "Laplace",
    "Ledger",
    "MatrixMechanism",
    "Mechanism",
    "MissingExtra",
    "NoisyMax",
    "NoisyThreshold",
    "PermuteAndFlip",
    "Plan",
    "PoissonSampled",
    "PrivacyProfile",
    "PrivlossError",
    "PureDP",
    "Quantile",
    "RandomizedResponse",
    "RefusedError",
    "Sampled",
    "SelectBest",
    "Shuffled",
    "SmoothSensitivity",
    "StabilityHistogram",
    "Step",
    "Tabulated",
    "Together",
    "TopK",
    "TradeOff",
    "TreeAggregation",
    "TruncatedCDP",
    "TruncatedGaussian",
    "TruncatedLaplace",
    "TruncatedPoisson",
    "UnaryEncoding",
    "Unreachable",
    "Unsupported",
    "WithReplacement",
    "__version__",
    "adaptive_clipping",
    "allocate",
    "audit",
    "calibrate",
    "central_limit",
    "certify",
    "compare",
    "composition",
    "confident_gnmax",
    "conversion",
    "dp_ftrl",
    "dp_sgd",
    "estimate",
    "figures",
    "gaussian_dp",
    "group",
    "inequalities",
    "limits",
    "odometers",
    "optimal_conversion",
    "parallel",
    "parameters",
    "pipelines",
    "propose_test_release",
    "register",
    "remarks",
    "saddle_point",
    "select_best",
    "selfcheck",
    "shuffling",
    "subsampling",
    "sweep",
    "tabulate",
    "tabulate_densities",
    "together",
    "tracing",
    "tradeoff",
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
