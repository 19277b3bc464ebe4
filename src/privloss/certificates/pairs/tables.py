"""Steps with finitely many outcomes, for the checker: their probabilities under both neighbours, in exact terms.
docs/certificates.md, section 11, names the theorems."""

from __future__ import annotations

import math
from collections.abc import Callable

from flint import arb, ctx

from privloss.certificates.balls import need
from privloss.certificates.budget import charge
from privloss.certificates.pairs.curves import profile_rows, trade_off_rows
from privloss.certificates.pairs.noise import WITHOUT_NOISE, Step, noise_and_size
from privloss.certificates.pairs.outcomes import Outcomes, plain_rows


def _box_rows(step: Step, adjacency: str) -> Outcomes:
    e, slack = arb(float(step["epsilon"])), arb(float(step.get("delta", 0.0)))
    need(slack < 1, "plan: delta = 1 promises nothing")
    up = (1 - slack) / (1 + (-e).exp())
    same = 1 - slack
    rows = [(up, up * (-e).exp()), (up * (-e).exp(), up)] if e > 0 else [(same, same)]
    return plain_rows(rows, "(e, d)-DP is dominated by randomised response with d", only=slack)


def _response_rows(step: Step, adjacency: str) -> Outcomes:
    answers = arb(int(step.get("answers", 2)))
    if "epsilon" in step:
        ratio = arb(float(step["epsilon"])).exp()
    else:
        p = arb(float(step["p"]))
        need(p > 0, "plan: an answer that is always true has no finite epsilon")
        ratio = 1 + (1 - p) * answers / p
    small = 1 / (ratio + answers - 1)
    private = float(step["epsilon"]) > 0 if "epsilon" in step else float(step["p"]) < 1
    same = (answers - 2 if private else answers) * small
    rows = [(ratio * small, small), (small, ratio * small)] if private else []
    if not private or answers > 2:
        rows.append((same, same))
    return plain_rows(rows, "randomised response: two answers that differ")


def _unary_rows(step: Step, adjacency: str) -> Outcomes:
    p, q = arb(float(step["p"])), arb(float(step["q"]))
    need(q > 0 and p < 1, "plan: unary encoding with q = 0 or p = 1")
    both, one = p * q + (1 - p) * (1 - q), arb(1)
    up, down = p * (1 - q), q * (1 - p)
    rows = [(up, down), (down, up), (both, both)] if p > q else [(one, one)]
    return plain_rows(rows, "unary encoding: the two bits that differ")


def _custom_rows(step: Step, adjacency: str) -> Outcomes:
    charge(4 * len(step["p"]))
    p, q = ([arb(float(x)) for x in step[name]] for name in ("p", "q"))
    sum_p, sum_q = sum(p, arb(0)), sum(q, arb(0))
    rows = [(x / sum_p, y / sum_q) for x, y in zip(p, q, strict=True) if x > 0 and y > 0]
    only_p = sum((x for x, y in zip(p, q, strict=True) if y == 0), arb(0)) / sum_p
    only_q = sum((y for x, y in zip(p, q, strict=True) if x == 0), arb(0)) / sum_q
    return Outcomes(rows, only_p, only_q, arb(0), arb(0), "the pair as given, made to sum to one", False)


def _discrete_laplace_rows(step: Step, adjacency: str) -> Outcomes:
    noise, size = noise_and_size(step, "scale", adjacency)
    need(noise > 0, WITHOUT_NOISE)
    a, s = 1 / arb(noise), int(size)
    need(s <= 20_000, "plan: too many losses")
    charge(4 * s)
    end = 1 / (1 + (-a).exp())
    rows = [(end, end * (-a * s).exp()), (end * (-a * s).exp(), end)]
    step_mass = (1 - (-a).exp()) * end
    masses = [step_mass * (-a * x).exp() for x in range(s)]
    rows += [(masses[x], masses[s - x]) for x in range(1, s)]
    return plain_rows(rows, "discrete Laplace pair, moved by the sensitivity")


def _discrete_gaussian_rows(step: Step, adjacency: str) -> Outcomes:
    """Outcomes from -reach to s + reach; the rest, a ratio of sums of e^(-k^2/2 sigma^2), is left out."""
    noise, size = noise_and_size(step, "sigma", adjacency)
    need(noise > 0, WITHOUT_NOISE)
    sigma, s = arb(noise), int(size)
    reach = math.ceil(noise * math.sqrt(2 * 0.7 * int(ctx.prec)) + 1)
    need(2 * reach + s <= 20_000, "plan: too many losses")
    charge(6 * (reach + s))
    weights = {k: (-((arb(k) / sigma) ** 2) / 2).exp() for k in range(-reach - s, reach + s + 1)}
    # beyond K the terms fall by at least e^(-K/sigma^2) each
    far = arb(reach + s)
    rest = 2 * (-(((far + 1) / sigma) ** 2) / 2).exp() / (1 - (-far / sigma**2).exp())
    total = sum(weights.values(), arb(0)) + arb(0).union(rest)
    masses = {k: weights[abs(k)] / total for k in range(reach + s + 1)}
    rows = [(masses[abs(k)], masses[abs(k - s)]) for k in range(-reach, s + reach + 1)]
    near = arb(reach)
    left_out = 2 * (-(((near + 1) / sigma) ** 2) / 2).exp() / (1 - (-near / sigma**2).exp()) / total
    rows.reverse()
    text = "discrete Gaussian pair, moved by the sensitivity"
    return Outcomes(rows, arb(0), arb(0), left_out, left_out, text, True, (sigma, s))


def _choice_rows(step: Step, adjacency: str) -> Outcomes | None:
    """A choice by scores that do not count has one outcome in effect."""
    one = arb(1)
    return plain_rows([(one, one)], "epsilon = 0: nothing is lost") if float(step["epsilon"]) == 0 else None


_TABLES: dict[str, Callable[[Step, str], Outcomes | None]] = {
    "pure-dp": _box_rows,
    "approx-dp": _box_rows,
    "randomized-response": _response_rows,
    "unary-encoding": _unary_rows,
    "custom": _custom_rows,
    "trade-off": trade_off_rows,
    "privacy-profile": profile_rows,
    "discrete-laplace": _discrete_laplace_rows,
    "discrete-gaussian": _discrete_gaussian_rows,
    "exponential": _choice_rows,
    "noisy-max": _choice_rows,
    "permute-and-flip": _choice_rows,
}


def table_rows(step: Step, adjacency: str) -> Outcomes | None:
    """The outcomes of a step that has finitely many; None for others."""
    rows = _TABLES.get(step["mechanism"])
    return None if rows is None else rows(step, adjacency)
