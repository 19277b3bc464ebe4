"""Samplers and whole plans, for the checker: see `pairs.py` for what a step is without its sampler."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import acb, arb

from privloss.certificates.balls import Rejected, Use, need, tail
from privloss.certificates.checker import Mixture, Normal, Pair, Steps, Table
from privloss.certificates.methods.residues import Pieces
from privloss.certificates.pairs.densities import Piece, folded_density, folded_hit, sampled_density
from privloss.certificates.pairs.tables import Named, Outcomes, above
from privloss.certificates.pairs.unsampled import TruncatedNormal, distances, refuse, table_rows, unsampled
from privloss.mechanisms.base import Plan

FORWARD, BACKWARD = "P against Q", "Q against P"
_ALL = arb(1)
_NOTHING = Table([(_ALL, _ALL)])


@dataclass(frozen=True)
class Sides:
    """Steps by direction; a symmetric plan has one direction only."""

    upper: dict[str, Steps]
    lower: dict[str, Steps]
    theorems: tuple[str, ...]


def plan_pairs(data: Any, adjacency: Any) -> Sides:
    """The steps of a plan file under an adjacency (one of the plan format's)."""
    try:
        plan = Plan.from_dict({**data, "adjacency": adjacency} if isinstance(data, dict) else data)
    except ValueError as problem:
        raise Rejected(f"plan: {problem}") from None
    named = [(_named(mechanism.to_dict(), adjacency), times) for mechanism, times in plan.steps]
    uneven = sum(times for n, times in named if not n.symmetric)
    need(
        adjacency != "replace-one" or uneven <= 1, "plan: roles of neighbours may swap; uneven pairs cannot be composed"
    )
    upper: dict[str, Steps] = {}
    lower: dict[str, Steps] = {}
    for i, name in enumerate((FORWARD, BACKWARD)):
        upper[name] = [(n.pairs[i], times) for n, times in named]
        lower[name] = [((n.attained or n.pairs)[i], times) for n, times in named]
    if all(n.symmetric for n, _ in named):
        del upper[BACKWARD]
        if all(n.attained is None for n, _ in named):
            del lower[BACKWARD]
    return Sides(upper, lower, tuple(dict.fromkeys(n.theorem for n, _ in named)))


def _named(step: dict[str, Any], adjacency: str) -> Named:
    sampling = step.get("sampling")
    if sampling is None:
        return unsampled(step, adjacency)
    scheme, kind = sampling["scheme"], step["mechanism"]
    if kind == "gdp":  # any mu-GDP mechanism is dominated by the Gaussian with sigma = 1/mu
        step = {"mechanism": "gaussian", "sigma": 1.0, "sensitivity": step["mu"], "sampling": sampling}
        kind = "gaussian"
    if kind == "gaussian":
        return _GAUSSIAN[scheme](step, sampling, adjacency)
    if scheme == "poisson" and adjacency != "replace-one":
        return _poisson(step, sampling)
    if scheme == "fixed-size" and adjacency == "replace-one":
        return _fixed_size_other(step, sampling, adjacency)
    if scheme == "shuffle" and adjacency != "add-remove":
        plain = unsampled(step, adjacency)
        return Named(_SHUFFLE + plain.theorem, plain.pairs, (_NOTHING, _NOTHING), plain.symmetric)
    raise refuse(f"{kind!r} with {scheme!r} sampling under {adjacency}")


# -- Gaussian noise ----------------------------------------------------------------------------------------------------


def _hit(rate: arb, a: arb, b: arb | int = 0) -> list[tuple[arb, arb, arb]]:
    """(1-q) N(0) + q N(a) against (1-q) N(0) + q N(b)."""
    return [(1 - rate, arb(0), arb(0)), (rate, a, arb(b))]


def _both(triples: list[tuple[arb, arb, arb]]) -> tuple[Pair, Pair]:
    return Mixture(triples), Mixture([(w, b, a) for w, a, b in triples])


def _gaussian_poisson(step: dict[str, Any], sampling: dict[str, Any], adjacency: str) -> Named:
    rate, (add, _) = arb(float(sampling["rate"])), distances(step, adjacency)
    if rate == 1:
        return unsampled(step, adjacency)
    if rate == 0:
        return Named("nothing is sampled", (_NOTHING, _NOTHING), symmetric=True)
    if adjacency == "replace-one":
        need("noise_multiplier" in step, "plan: Poisson under replace-one needs a noise multiplier")
        pair = Mixture(_hit(rate, add, -add))
        return Named(
            "Poisson under replace-one: (1-q) N(0) + q N(s) against (1-q) N(0) + q N(-s)", (pair, pair), None, True
        )
    return Named("Poisson: (1-q) N(0) + q N(s) against N(0), both directions", _both(_hit(rate, add)))


def _gaussian_fixed_size(step: dict[str, Any], sampling: dict[str, Any], adjacency: str) -> Named:
    rate, (_, replace) = arb(sampling["m"]) / arb(sampling["n"]), distances(step, adjacency)
    if sampling["m"] == sampling["n"]:
        need(adjacency != "add-remove", "plan: a neighbour with n - 1 records has no batch of n")
        return unsampled(step, adjacency)
    pairs = _both(_hit(rate, replace))
    if adjacency == "add-remove":
        return Named("fixed size, add-remove: a Poisson sample with the distance of a replacement", pairs)
    folded = folded_hit(rate, replace)
    text = "fixed size: symmetric pair of (1-q) N(0) + q N(s) against N(0); attained: the pair itself"
    return Named(text, (folded, folded), pairs if adjacency == "replace-one" else (_NOTHING, _NOTHING), True)


def _gaussian_with_replacement(step: dict[str, Any], sampling: dict[str, Any], adjacency: str) -> Named:
    """K ~ Bin(m, 1/n) draws, revealed when positive; what is rarer than 2^-bits counts as disclosure."""
    n, m, (add, s) = sampling["n"], sampling["m"], distances(step, adjacency)
    need(n > 1 and m <= 100 * n, "plan: draws with replacement need n > 1 and m <= 100 n")
    chance, draws = (1 - 1 / arb(n)) ** m, []
    for k in range(m + 1):
        draws.append(chance)
        chance = chance * (m - k) / (k + 1) / (n - 1)
        if k > 2 * m / n and (chance * 2 < arb(2) ** -90 or k > 60):  # each next is at most half of the last
            break
    rate, rest = 1 - draws[0], 1 - sum(draws, arb(0))
    make: Callable[[arb], tuple[Pair, Pair]]
    if adjacency == "add-remove":
        make = lambda distance: _both(_hit(rate, distance))  # noqa: E731
    else:
        make = lambda distance: (folded_hit(rate, distance),) * 2  # noqa: E731
    found = [(p / rate, make(k * s)) for k, p in enumerate(draws) if k]
    pairs = tuple(Blend([(w, both[i]) for w, both in found], rest / rate) for i in (0, 1))
    least = add if adjacency == "zero-out" else s
    hits = [(p, k * least, arb(0)) for k, p in enumerate(draws)]
    hits[-1] = (hits[-1][0] + rest, *hits[-1][1:])
    text = "with replacement: the number of draws revealed; attained: all other records alike"
    return Named(text, pairs, _both(hits), adjacency != "add-remove")  # type: ignore[arg-type]


def _gaussian_truncated(step: dict[str, Any], sampling: dict[str, Any], adjacency: str) -> Named:
    """S ~ Bin(others, q) revealed; from `most` on the record replaces another."""
    rate, n, most = arb(float(sampling["rate"])), sampling["n"], sampling["most"]
    add, replace = distances(step, adjacency)
    others = n if adjacency == "add-remove" else n - 1
    plain = _gaussian_poisson(step, sampling, adjacency)
    if most > others or rate == 0:
        return plain
    need(rate < 1, "plan: truncated Poisson needs a rate below 1")
    need(adjacency != "replace-one" or "noise_multiplier" in step, "plan: needs a noise multiplier")
    over = rate.beta_lower(arb(most), arb(others - most + 1), regularized=1) if others <= 10**7 else arb(1)
    over = arb(over.abs_upper()) if over.is_finite() and over < 1 else arb(1)
    displaced = _both(_hit(rate, replace)) if adjacency == "add-remove" else (folded_hit(rate, replace),) * 2
    pairs = tuple(Blend([(1 - over, plain.pairs[i]), (over, displaced[i])], arb(0)) for i in (0, 1))
    kept = rate * (1 - over)
    below = _hit(kept, add, -add if adjacency == "replace-one" else 0)
    attained = _both(below) if kept > 0 else (_NOTHING, _NOTHING)
    text = "truncated Poisson: the number of others revealed; attained: others that contribute nothing"
    return Named(text, pairs, attained, plain.symmetric)  # type: ignore[arg-type]


_SHUFFLE = "shuffled epochs: given the permutation a record touches one step; "


def _gaussian_shuffled(step: dict[str, Any], sampling: dict[str, Any], adjacency: str) -> Named:
    need(adjacency != "add-remove", "plan: shuffling has no pair under add-remove")
    plain = unsampled(step, adjacency)
    if sampling["steps"] == 1:
        return plain
    add, replace = distances(step, adjacency)
    there, away = (replace, arb(0)) if adjacency == "replace-one" else (add, arb(0))
    if adjacency == "zero-out" and "noise_multiplier" in step:
        there, away = replace, add
    below = _largest_of(sampling["steps"], there, away)
    text = _SHUFFLE + plain.theorem + "; attained: the largest output"
    return Named(text, plain.pairs, below, True)


def _gaussian_allocated(step: dict[str, Any], sampling: dict[str, Any], adjacency: str) -> Named:
    steps, k, (add, replace) = sampling["steps"], sampling.get("k", 1), distances(step, adjacency)
    pair = Normal(k * (replace if adjacency == "replace-one" else add) ** 2)
    below = (_NOTHING, _NOTHING) if k > 1 or adjacency == "replace-one" else _largest_of(steps, add, arb(0))
    text = "allocation: given its places a record touches k steps (no amplification); attained: the largest output"
    return Named(text, (pair, pair), None if k == steps else below, True)


def _largest_of(steps: int, there: arb, away: arb) -> tuple[Pair, Pair]:
    """Which of 300 bins the largest of `steps` outputs falls into, one of them moved: post-processing."""
    edges = [-8 + j * (17 + there) / 299 for j in range(300)]

    def masses(distance: arb) -> list[arb]:
        cdf = [arb(0), *(tail(distance - x) * tail(-x) ** (steps - 1) for x in edges), arb(1)]
        return [high - low for low, high in itertools.pairwise(cdf)]

    rows = [(p, q) for p, q in zip(masses(there), masses(away), strict=True) if p > 0 and q > 0]
    left = tuple(1 - sum((r[i] for r in rows), arb(0)) for i in (0, 1))  # left out: a lower end may
    return Table(rows, 0, abs(left[0])), Table([(q, p) for p, q in rows], 0, abs(left[1]))


_GAUSSIAN: dict[str, Callable[[dict[str, Any], dict[str, Any], str], Named]] = {
    "poisson": _gaussian_poisson,
    "fixed-size": _gaussian_fixed_size,
    "with-replacement": _gaussian_with_replacement,
    "truncated-poisson": _gaussian_truncated,
    "shuffle": _gaussian_shuffled,
    "allocation": _gaussian_allocated,
}


# -- other noise -------------------------------------------------------------------------------------------------------


class Blend(Pair):
    """One of several pairs at random, and which one is shown."""

    def __init__(self, parts: list[tuple[arb, Pair]], infinite: arb) -> None:
        self.parts = parts
        self.infinite = infinite + sum((w * pair.infinite for w, pair in parts), arb(0))
        self.dropped = sum((w * pair.dropped for w, pair in parts), arb(0))

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        lines = [[w * value for value in pair.line(c, step, count, use)] for w, pair in self.parts]
        return [sum(values, acb(0)) for values in zip(*lines, strict=True)]

    def thinned(self, use: Use) -> arb:
        return sum((w * pair.thinned(use) for w, pair in self.parts), arb(0))

    def beyond(self, c: arb, t: arb, use: Use) -> arb:
        return sum((w * pair.beyond(c, t, use) for w, pair in self.parts), arb(0))


def _piece(step: dict[str, Any], rate: arb, adjacency: str) -> tuple[Outcomes, Piece]:
    """A step with a density: its rows, and its interval."""
    named = unsampled(step, adjacency)
    pair = named.pairs[0]
    rows: list[tuple[arb, arb]] = []
    if isinstance(pair, Pieces):  # u is the loss itself
        low, high, slope, height = pair.pieces[0]
        rows = [(p, p * (-loss).exp()) for p, loss in pair.atoms if p > 0]
        found = Piece(low, high, (height.log(), slope - 1, arb(0)), arb(1), arb(0), rate)
    elif isinstance(pair, TruncatedNormal):  # u is the output, its mean mu under Q
        mu, mass = pair.mu, pair.mass * (2 * arb.pi()).sqrt()
        log_density = (-mass.log() - mu * mu / 2, mu, arb(-0.5))
        found = Piece(mu - pair.bound, pair.bound, log_density, -mu, mu * mu / 2, rate)
    else:
        raise refuse(f"a sample of {step['mechanism']!r}")
    return Outcomes(rows, pair.infinite, pair.infinite, arb(0), arb(0), named.theorem, True), found


_SAMPLE = "Poisson sample: (1-q) Q + q P against Q, both directions, of: "


def _sampled_pairs(step: dict[str, Any], rate: arb, adjacency: str) -> tuple[str, tuple[Pair, Pair]]:
    """Theorem, and both directions."""
    rows = table_rows(step)
    if rows is not None:
        return rows.theorem, rows.sampled(rate).named().pairs
    rows, piece = _piece(step, rate, adjacency)
    return rows.theorem, sampled_density(rows, piece)


def _symmetric_pair(step: dict[str, Any], rate: arb, adjacency: str) -> Pair:
    """The losses above 0 of the sampled pair, and their mirror images."""
    rows = table_rows(step)
    if rows is None:
        return folded_density(*_piece(step, rate, adjacency))
    mixed = rows.sampled(rate)
    kept = above(mixed.rows)
    middle = 1 - mixed.only_p - sum((p + q for p, q in kept), arb(0))
    folded = Table([*kept, *((q, p) for p, q in kept), (middle, middle)], mixed.only_p)
    folded.dropped = mixed.dropped_p
    return folded


def _poisson(step: dict[str, Any], sampling: dict[str, Any]) -> Named:
    rate = arb(float(sampling["rate"]))
    if rate == 0:
        return Named("nothing is sampled", (_NOTHING, _NOTHING), symmetric=True)
    if rate == 1:
        return unsampled(step, "add-remove")
    theorem, pairs = _sampled_pairs(step, rate, "add-remove")
    attained = None
    plain = unsampled(step, "add-remove").attained
    if plain is not None:
        need(isinstance(plain[0], Table), "plan: a sample of this step has no attained pair")
        rows = [(p, p * (-loss).exp()) for p, loss in plain[0].atoms]  # type: ignore[attr-defined]
        attained = Outcomes(rows, arb(0), arb(0), arb(0), arb(0), "", False).sampled(rate).named().pairs
    return Named(_SAMPLE + theorem, pairs, attained)


def _fixed_size_other(step: dict[str, Any], sampling: dict[str, Any], adjacency: str) -> Named:
    rate = arb(sampling["m"]) / arb(sampling["n"])
    if sampling["m"] == sampling["n"]:
        return unsampled(step, adjacency)
    if step["mechanism"] in ("custom", "truncated-gaussian", "zcdp"):
        raise refuse(f"a batch of fixed size of {step['mechanism']!r}")
    theorem, pairs = _sampled_pairs(step, rate, adjacency)
    folded = _symmetric_pair(step, rate, adjacency)
    if unsampled(step, adjacency).attained is not None:
        pairs = (_NOTHING, _NOTHING)
    return Named("fixed size: symmetric pair of a sample of: " + theorem, (folded, folded), pairs, True)
