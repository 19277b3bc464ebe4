"""What ran: one file per mechanism, one per sampler. Importing this room fills the registry (`kinds.py`); a new
mechanism is its own file and one line here."""

from privloss.mechanisms import approx_dp as approx_dp
from privloss.mechanisms import custom as custom
from privloss.mechanisms import discrete_gaussian as discrete_gaussian
from privloss.mechanisms import discrete_laplace as discrete_laplace
from privloss.mechanisms import distance_test as distance_test
from privloss.mechanisms import exponential as exponential
from privloss.mechanisms import gaussian as gaussian
from privloss.mechanisms import gaussian_mixture as gaussian_mixture
from privloss.mechanisms import gdp as gdp
from privloss.mechanisms import gnmax as gnmax
from privloss.mechanisms import laplace as laplace
from privloss.mechanisms import matrix_mechanism as matrix_mechanism
from privloss.mechanisms import noisy_max as noisy_max
from privloss.mechanisms import noisy_threshold as noisy_threshold
from privloss.mechanisms import privacy_profile as privacy_profile
from privloss.mechanisms import pure_dp as pure_dp
from privloss.mechanisms import randomized_response as randomized_response
from privloss.mechanisms import rdp as rdp
from privloss.mechanisms import smooth_sensitivity as smooth_sensitivity
from privloss.mechanisms import stability_histogram as stability_histogram
from privloss.mechanisms import tabulated as tabulated
from privloss.mechanisms import trade_off as trade_off
from privloss.mechanisms import tree as tree
from privloss.mechanisms import truncated_gaussian as truncated_gaussian
from privloss.mechanisms import truncated_laplace as truncated_laplace
from privloss.mechanisms import unary_encoding as unary_encoding
from privloss.mechanisms import zcdp as zcdp
from privloss.mechanisms.samplers import batches as batches
from privloss.mechanisms.samplers import epochs as epochs
from privloss.mechanisms.samplers import poisson as poisson
from privloss.mechanisms.samplers import truncated_poisson as truncated_poisson
