"""Wrong constants, dropped hypotheses and turned signs, for every label of the chapter: one change to one file each.

`mutations.py` makes the change in a copy of the sources and runs the tests that docs/chapter.md names for the label.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """In `file` of src/privloss the text `old`, which occurs once or is the first of its kind, becomes `new`."""

    label: str
    what: str
    file: str
    old: str
    new: str


_COMP, _CONV, _SUB, _GROUP = (f"theorems/{name}.py" for name in ("composition", "conversion", "subsampling", "group"))
_LIMITS, _INEQ, _PIPES = "theorems/limits.py", "theorems/inequalities.py", "theorems/pipelines.py"
_BASE, _DISCRETE, _SMOOTH = (f"theorems/pairs/{name}.py" for name in ("base", "discrete", "smooth"))
_FIGURES, _GDP = "theorems/figures.py", "theorems/gaussian_dp.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "thm:basic_composition",
        "the largest step instead of the sum",
        _COMP,
        "return math.fsum(values)",
        "return float(max(values))",
    ),
    Mutant("thm:basic_composition", "deltas forgotten", _COMP, "steps.total(zero + steps.deltas)", "steps.total(zero)"),
    Mutant(
        "defn:priv_loss", "the ratio upside down", _DISCRETE, "return math.log(a / b) if", "return math.log(b / a) if"
    ),
    Mutant(
        "prop:gauss_privloss",
        "rho without its half",
        _SMOOTH,
        "return 0.5 * distance * distance",
        "return distance * distance",
    ),
    Mutant(
        "prop:gauss_privloss",
        "variance rho instead of 2 rho",
        _SMOOTH,
        "ndtr((self.rho - epsilon) / math.sqrt(2 * self.rho))",
        "ndtr((self.rho - epsilon) / math.sqrt(self.rho))",
    ),
    Mutant(
        "rem:dual_privloss",
        "the same pair, not the other direction",
        _DISCRETE,
        "return DiscretePair(self.q, self.p)",
        "return DiscretePair(self.p, self.q)",
    ),
    Mutant(
        "lem:dual_privloss",
        "weight e^Z instead of e^-Z",
        _BASE,
        "lambda z: g(z) * math.exp(-z)",
        "lambda z: g(z) * math.exp(z)",
    ),
    Mutant(
        "prop:privloss_adp",
        "second tail without e^eps",
        _BASE,
        "(math.exp(min(eps, 709.0)) * under_q if",
        "(under_q if",
    ),
    Mutant(
        "prop:privloss_adp",
        "expectation with e^-z alone",
        _BASE,
        "-math.expm1(eps - z) if z > eps",
        "-math.expm1(-z) if z > eps",
    ),
    Mutant(
        "prop:privloss_adp",
        "integral without its infinite mass",
        _DISCRETE,
        "self.mass_at_infinity * math.exp(epsilon - edges[-1])",
        "0.0",
    ),
    Mutant("cor:gauss_adp_exact", "sigma times sensitivity", _GDP, "math.hypot(*(x / y for", "math.hypot(*(x * y for"),
    Mutant(
        "cor:gauss_adp_exact",
        "readable bound with 4 for its 2",
        _SMOOTH,
        "/ max(2.0, math.sqrt(math.pi",
        "/ max(4.0, math.sqrt(math.pi",
    ),
    Mutant(
        "thm:privloss_composition",
        "Q is not multiplied",
        _DISCRETE,
        "[a * b for a in self.q for b in other.q]",
        "[a * b for a in self.q for b in other.p]",
    ),
    Mutant(
        "cor:gauss_adp_exact_multi",
        "the largest quotient for the l2 norm",
        _GDP,
        "return math.hypot(*(",
        "return max(*(",
    ),
    Mutant(
        "defn:cdp",
        "the search over t left out",
        "answers/concentrated.py",
        "found = rest.mean_bounds() if falls",
        "found = (0.0, 0.0) if falls",
    ),
    Mutant(
        "defn:cdp",
        "half of it",
        "answers/concentrated.py",
        "below, upper = _if_finite(worst.loss, _rho_bounds)",
        "below, upper = (x / 2 for x in _if_finite(worst.loss, _rho_bounds))",
    ),
    Mutant("lem:gauss_cdp", "without its half", _CONV, "(width / noise) ** 2 / 2, 4", "(width / noise) ** 2, 4"),
    Mutant("lem:gauss_cdp", "variance twice", _CONV, "(width / noise) ** 2 / 2, 4", "(width / noise) ** 2 / 4, 4"),
    Mutant(
        "thm:cdp_composition",
        "the maximum of a list",
        _COMP,
        "total = steps.total(steps.epsilons)\n    return plain(total if",
        "total = np.asarray(np.max(steps.epsilons))\n    return plain(total if",
    ),
    Mutant("prop:cdp2adp", "t^2 rho", _CONV, "raised(t * (t + 1) * rho, 4)", "raised(t * t * rho, 4)"),
    Mutant(
        "prop:cdp2adp",
        "simple form with sqrt(2 rho log)",
        _CONV,
        "rhos + 2 * np.sqrt(-rhos",
        "rhos + np.sqrt(-2 * rhos",
    ),
    Mutant(
        "prop:cdp2adp", "epsilon >= rho not asked for", _CONV, "if np.any(eps < rhos):", "if np.any(eps < 0 * rhos):"
    ),
    Mutant("prop:cdp2adp", "exponent over 8 rho", _CONV, "(eps - rhos) ** 2 / (4 *", "(eps - rhos) ** 2 / (8 *"),
    Mutant(
        "rem:rho", "least rho halved", _CONV, "low = eps**2 / (4 * log + 4 * eps)", "low = eps**2 / (8 * log + 8 * eps)"
    ),
    Mutant("rem:rho", "sigma^2 halved", _CONV, "width * math.sqrt(2 * (log + eps))", "width * math.sqrt(log + eps)"),
    Mutant(
        "prop:pdp2cdp",
        "eps^2/4",
        _CONV,
        'numbers("epsilon", epsilon, low=0) ** 2 / 2',
        'numbers("epsilon", epsilon, low=0) ** 2 / 4',
    ),
    Mutant(
        "prop:pdp2cdp",
        "tight curve with tanh for sinh",
        _CONV,
        "np.log1p(2 * np.sinh(orders * eps / 2)",
        "np.log1p(2 * np.tanh(orders * eps / 2)",
    ),
    Mutant(
        "lem:hoeffding",
        "t^2 b^2 / 2.2",
        _CONV,
        "value = at * centre + (at * width) ** 2 / 2\n",
        "value = at * centre + (at * width) ** 2 / 2.2\n",
    ),
    Mutant(
        "lem:hoeffding",
        "without its half",
        _CONV,
        "value = at * centre + (at * width) ** 2 / 2\n",
        "value = at * centre + (at * width) ** 2\n",
    ),
    Mutant(
        "lem:hoeffding",
        "mean beyond the bound accepted",
        _CONV,
        "np.abs(centre) > width * (1 + _ROUNDED)",
        "np.abs(centre) > 2 * width",
    ),
    Mutant(
        "fig:composition_comparison",
        "variance of Laplace noise halved",
        _FIGURES,
        "sigma = math.sqrt(2) / epsilon",
        "sigma = 1 / epsilon",
    ),
    Mutant(
        "thm:advancedcomposition_pure",
        "log(1/delta) without its 2",
        _COMP,
        "np.sqrt(-2 * np.log(target) * many)",
        "np.sqrt(-np.log(target) * many)",
    ),
    Mutant(
        "thm:advancedcomposition_pure",
        "no drift",
        _COMP,
        "rounded_up(0.5 * squares + _spread(squares, target)",
        "rounded_up(0 * squares + _spread(squares, target)",
    ),
    Mutant(
        "prop:adaptivecomp",
        "rhos averaged",
        _COMP,
        "total = steps.total(steps.epsilons)\n    return plain(total if",
        "total = np.asarray(np.mean(steps.epsilons))\n    return plain(total if",
    ),
    Mutant(
        "lem:postprocessing",
        "merged outcomes take the larger probability",
        _DISCRETE,
        "merged = [[math.fsum(v for v, t",
        "merged = [[max(v for v, t",
    ),
    Mutant(
        "cor:postprocesing",
        "labels shifted for Q",
        _DISCRETE,
        "return DiscretePair(*merged)",
        "return DiscretePair(merged[0], merged[1][1:] + merged[1][:1])",
    ),
    Mutant(
        "thm:advancedcomposition_approx",
        "delta' = delta",
        _COMP,
        "np.where(used > 0, padded_down(target - used, 1e-15), target)",
        "target",
    ),
    Mutant(
        "thm:advancedcomposition_approx",
        "the larger of basic and advanced",
        _COMP,
        "np.minimum(rounded_up(steps.total(steps.epsilons), 2), advanced)",
        "np.maximum(rounded_up(steps.total(steps.epsilons), 2), advanced)",
    ),
    Mutant(
        "lem:decomposition",
        "twice the delta is accepted",
        _DISCRETE,
        "if worst > slack * (1 + 1e-12) + 1e-15:",
        "if worst > 2 * slack:",
    ),
    Mutant(
        "lem:decomposition",
        "no part moved to the rest",
        _DISCRETE,
        "part = min(slack, self.total_variation())",
        "part = 0.5 * min(slack, self.total_variation())",
    ),
    Mutant(
        "cor:kov",
        "the factor 1/(e^eps - 1) as e^-eps",
        _DISCRETE,
        "gain = 1 / math.expm1(self.epsilon) if",
        "gain = math.exp(-self.epsilon) if",
    ),
    Mutant("thm:lowerbound", "16 as 8", _LIMITS, "math.sqrt(k) / (16 * n * growth)", "math.sqrt(k) / (8 * n * growth)"),
    Mutant(
        "thm:lowerbound",
        "k >= 20 (e^eps - 1)^2 n",
        _LIMITS,
        "least = 200 * growth**2 * n",
        "least = 20 * growth**2 * n",
    ),
    Mutant("thm:lowerbound", "delta <= 1/(20 n)", _LIMITS, "if slack > 1 / (100 * n):", "if slack > 1 / (20 * n):"),
    Mutant("thm:lowerbound", "capped at 1/2", _LIMITS, "growth), 8), 0.1)) if", "growth), 8), 0.5)) if"),
    Mutant(
        "lem:fingerprinting",
        "the square of f - X forgotten",
        _LIMITS,
        "return correlation + error",
        "return correlation",
    ),
    Mutant(
        "lem:fingerprinting",
        "n p forgotten",
        _LIMITS,
        "plain = s * _beta(s, n - s) - n * _beta(s + 1, n - s)",
        "plain = s * _beta(s, n - s)",
    ),
    Mutant(
        "lem:indistinguishable_expectation",
        "delta D instead of 2 delta D",
        _LIMITS,
        "+ 2 * slack * width",
        "+ slack * width",
    ),
    Mutant(
        "lem:indistinguishable_expectation",
        "1 - e^-eps for e^eps - 1",
        _LIMITS,
        "growth = math.expm1(eps) if eps < 709",
        "growth = -math.expm1(-eps) if eps < 709",
    ),
    Mutant(
        "lem:indistinguishable_expectation",
        "E|Y| < |E Y| accepted",
        _LIMITS,
        "if abs(centre) > spread * (1 + _ROUNDED):",
        "if abs(centre) > 3 * spread + 1:",
    ),
    Mutant(
        "thm:subsampling_adp", "p^2 for p", _SUB, "near = np.log1p(p * np.expm1(", "near = np.log1p(p * p * np.expm1("
    ),
    Mutant(
        "thm:subsampling_adp", "delta not amplified", _SUB, "np.where(p == 1, slack, rounded_up(p * slack, 1))", "slack"
    ),
    Mutant(
        "defn:rdp",
        "K(alpha - 1)/alpha",
        "answers/renyi.py",
        "lows, highs = (np.maximum(k, 0.0) / c for k",
        "lows, highs = (np.maximum(k, 0.0) / (c + 1) for k",
    ),
    Mutant(
        "lem:rdp_composition",
        "counts forgotten",
        _COMP,
        "table = np.array(rows) * times.reshape",
        "table = np.array(rows) * np.ones_like(times).reshape",
    ),
    Mutant(
        "lem:rdp_properties", "part 5: alpha/16", _CONV, "rounded_up(orders / 8 * (a +", "rounded_up(orders / 16 * (a +"
    ),
    Mutant(
        "lem:rdp_properties",
        "part 6: the maximum",
        _GROUP,
        "log_mean(c, a, b, 1 - s, s), (1 - s)",
        "np.maximum(a, b), (1 - s)",
    ),
    Mutant(
        "lem:rdp_properties",
        "part 7: alpha' for alpha'/(alpha'-1)",
        _GROUP,
        "value = between / (between - 1) * float(first",
        "value = float(first",
    ),
    Mutant(
        "lem:rdp_properties",
        "part 7 for zCDP: rhos add",
        _GROUP,
        "return float(rounded_up(root * root, 6))",
        "return float(rounded_up(a + b, 6))",
    ),
    Mutant(
        "lem:rdp_properties",
        "part 8: order for order - 1",
        _CONV,
        "logs = raised(c * (values - eps), 8",
        "logs = raised(orders * (values - eps), 8",
    ),
    Mutant(
        "thm:rdp_subsampling",
        "(k-1) D_k with k",
        "losses/curve.py",
        "moments = (k - 1) * np.array([divergence(int(j)) for j in k])",
        "moments = k * np.array([divergence(int(j)) for j in k])",
    ),
    Mutant(
        "thm:rdp_subsampling",
        "p^(k-1)",
        "losses/curve.py",
        "k * math.log(rate) + log_excess",
        "(k - 1) * math.log(rate) + log_excess",
    ),
    Mutant(
        "thm:rdp_subsampling",
        "chord read at the order below",
        _SUB,
        "chord = (share * (order - 2) * below + (1 - share) * (order - 1) * above)",
        "chord = ((1 - share) * (order - 2) * below + share * (order - 1) * above)",
    ),
    Mutant(
        "thm:rdp_ss_flip",
        "alpha for 2 alpha - 1 in the total",
        _SUB,
        "return (2 * order - 1) * p + 3 * (1 - p)",
        "return order * p + 3 * (1 - p)",
    ),
    Mutant("thm:rdp_ss_flip", "alpha for 2 alpha - 1 everywhere", _SUB, "(2 * order - 1) * p", "order * p"),
    Mutant(
        "lem:frac",
        "p x for p / x",
        _INEQ,
        "return Sides(1 / (1 - p + p / at), 1 - p + p * at)",
        "return Sides(1 / (1 - p + p * at), 1 - p + p * at)",
    ),
    Mutant(
        "lem:wtf",
        "square for cube",
        _INEQ,
        "power * p * ((1 - p) / at + p) ** 3\n    return Sides(3",
        "power * p * ((1 - p) / at + p) ** 2\n    return Sides(3",
    ),
    Mutant(
        "lem:wtf",
        "2 for 3",
        _INEQ,
        "return Sides(3 * (1 - p) + power * p, right)",
        "return Sides(2 * (1 - p) + power * p, right)",
    ),
    Mutant(
        "thm:rdp_subsampling_asymptotic",
        "9 for 10",
        _SUB,
        "rounded_up(10 * p * p * r * order, 8)",
        "rounded_up(9 * p * p * r * order, 8)",
    ),
    Mutant(
        "thm:rdp_subsampling_asymptotic", "log(1/p)/(2 rho)", _SUB, "-math.log(p) / (4 * r)", "-math.log(p) / (2 * r)"
    ),
    Mutant("thm:rdp_subsampling_asymptotic", "1 + p^(-1/2)", _SUB, "1 + p**-0.25", "1 + p**-0.5"),
    Mutant(
        "thm:rdp_subsampling_asymptotic",
        "omega >= 2 + ...",
        _SUB,
        "least = 3 + 2 * math.log(1 / r)",
        "least = 2 + 2 * math.log(1 / r)",
    ),
    Mutant(
        "fig:rdp_subsampling",
        "limit of the wrong divergence",
        _FIGURES,
        '"limit": subsampling.renyi_jensen(alpha, rate, curve(alpha))',
        '"limit": subsampling.renyi_jensen(alpha, rate, rho)',
    ),
    Mutant(
        "lem:taylor",
        "1/2 for e/2",
        _INEQ,
        "math.e / 2 * order * (order - 1) * p**2",
        "0.5 * order * (order - 1) * p**2",
    ),
    Mutant(
        "lem:taylor",
        "hypothesis on x dropped",
        _INEQ,
        "if order > 2 and p * at > max(",
        "if order > 2 and p * at > 1e9 * max(",
    ),
    Mutant(
        "lem:taylor_high",
        "alpha p x for (alpha - 1) p x",
        _INEQ,
        "+ ((order - 1) * p * at) ** w",
        "+ (order * p * at) ** w",
    ),
    Mutant("lem:taylor_high", "last term forgotten", _INEQ, "+ ((order - 1) * p * at) ** w", "+ 0 * w"),
    Mutant(
        "prop:divergence_subsampling_analytic",
        "1/2 for e/2",
        _SUB,
        "math.log(math.e / 2 * order * (order - 1))",
        "math.log(0.5 * order * (order - 1))",
    ),
    Mutant(
        "prop:divergence_subsampling_analytic",
        "second form: omega for omega - 1",
        _SUB,
        "np.exp((w - 1) * (math.log((order - 1) * p)",
        "np.exp(w * (math.log((order - 1) * p)",
    ),
    Mutant(
        "prop:rdp_subsampling_jensen", "D for (1 - 1/alpha) D", _SUB, "share = (order - 1) / order * d", "share = d"
    ),
    Mutant(
        "prop:rdp_subsampling_jensen",
        "without alpha/(alpha - 1)",
        _SUB,
        "rounded_up(order / (order - 1) * value, 16)",
        "rounded_up(value, 16)",
    ),
    # results without a label
    Mutant(
        "Neyman-Pearson lemma", "no coin", _DISCRETE, "coin = min((rate - used) / under_q, 1.0) if", "coin = 1.0 if"
    ),
    Mutant(
        "lower bound for large orders",
        "log(1/p) without alpha/(alpha - 1)",
        _SUB,
        "d + order / (order - 1) * math.log(p)",
        "d + math.log(p)",
    ),
    Mutant(
        "replacement through group privacy",
        "cap rho for 4 rho",
        _PIPES,
        "group.zcdp(r, people=2)",
        "group.zcdp(r, people=1)",
    ),
    Mutant(
        "sec:subsamp_composition",
        "without T p delta_0",
        _PIPES,
        "advanced_approx(eps, slack, delta=target, count=count)",
        "advanced_approx(eps, 0.0, delta=target, count=count)",
    ),
    Mutant(
        "sec:addremovereplace",
        "2 delta for (1 + e^eps) delta",
        "losses/chains.py",
        "log_sum = math.log(k) if eps == 0 else",
        "log_sum = math.log(k) if eps >= 0 else",
    ),
    Mutant(
        "shuffling",
        "the condition's 16 as 8",
        "theorems/shuffling.py",
        "room = n / (16 * (math.log(2)",
        "room = n / (8 * (math.log(2)",
    ),
    Mutant(
        "tracing attack",
        "mu halved",
        "theorems/tracing.py",
        "mu = math.sqrt(k) / (n * noise) if",
        "mu = 0.5 * math.sqrt(k) / (n * noise) if",
    ),
    Mutant(
        "concurrent composition",
        "one system of two",
        _COMP,
        "return _each_count(epsilons, deltas, count, lambda plan: plan.delta(epsilon))",
        "return _each_count(np.max(epsilons), deltas, count, lambda plan: plan.delta(epsilon))",
    ),
    Mutant(
        "adaptive parameters",
        "half of what was spent",
        _COMP,
        "total = steps.total(steps.epsilons)\n    return plain(total if",
        "total = 0.5 * steps.total(steps.epsilons)\n    return plain(total if",
    ),
    Mutant(
        "optimal composition",
        "delta twice",
        _COMP,
        "PureDP(eps) if delta == 0 else ApproxDP(eps, delta)",
        "PureDP(eps) if delta == 0 else ApproxDP(eps, delta / 2)",
    ),
    Mutant(
        "original advanced composition (2010)",
        "eps^2 for eps (e^eps - 1)",
        _COMP,
        "steps.epsilons * np.expm1(steps.epsilons)",
        "steps.epsilons**2",
    ),
    Mutant(
        "fixed-size batches, Renyi",
        "p^2 C(a, 2) with 2 for its 4",
        "losses/curve.py",
        "math.log(4) + float(_log_expm1",
        "math.log(2) + float(_log_expm1",
    ),
    # remarks and notes
    Mutant("N(E Z, Var Z)", "a tenth of the constant", "theorems/central_limit.py", "0.4748, 0.56", "0.04748, 0.056"),
    Mutant(
        "sampling with replacement",
        "groups as private as one",
        "losses/samplers/draws.py",
        "groups = [approx(top, slack, k)",
        "groups = [approx(top, slack, 1)",
    ),
    Mutant("exact zCDP of pure DP", "tanh(eps/4)", _CONV, "eps * np.tanh(eps / 2)", "eps * np.tanh(eps / 4)"),
    Mutant(
        "lower bound in log(1/delta)",
        "a tail of e^(-s^2) would do",
        _LIMITS,
        "(eps + math.log(groups) + more) / 2",
        "(eps + math.log(groups) + more) / 4",
    ),
    Mutant(
        "truncated concentrated DP",
        "orders beyond omega",
        "mechanisms/truncated_cdp.py",
        "if k <= omega)",
        "if k <= 2 * omega)",
    ),
    Mutant(
        "chords between Renyi orders",
        "chords lowered",
        "losses/curve.py",
        "np.append(0.0, places * values)",
        "np.append(0.0, 0.9 * places * values)",
    ),
    Mutant(
        "largest loss is rare",
        "e^eps for e^-eps",
        "theorems/remarks.py",
        "1 / (1 + math.exp(-eps)), 4",
        "1 / (1 + math.exp(eps)), 4",
    ),
)
