"""privloss: what have we promised, exactly?

>>> import privloss as pl
>>> sgd = pl.Gaussian(noise_multiplier=1.1).poisson(0.01) * 10_000
>>> sgd.epsilon(delta=1e-6)
Bound(5.80693502656..., 5.80693502656...)
"""

from privloss.errors import InvalidInput, InvalidPlan, PrivlossError, Unsupported
from privloss.mechanisms.black_box import GDP, RDP, ZCDP, ApproxDP, PureDP
from privloss.mechanisms.gaussian import Gaussian
from privloss.mechanisms.laplace import Laplace
from privloss.mechanisms.plan import Plan
from privloss.mechanisms.randomized_response import RandomizedResponse
from privloss.mechanisms.sampling import PoissonSampled
from privloss.numerics.bound import Bound, Bounds

__version__ = "0.1.0"

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "Bound",
    "Bounds",
    "Gaussian",
    "InvalidInput",
    "InvalidPlan",
    "Laplace",
    "Plan",
    "PoissonSampled",
    "PrivlossError",
    "PureDP",
    "RandomizedResponse",
    "Unsupported",
    "__version__",
]
