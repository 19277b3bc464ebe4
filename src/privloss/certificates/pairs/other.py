"""Noise other than Gaussian on samples, for the checker: Poisson samples, batches of fixed size, shuffled epochs
(docs/certificates.md, section 11, and docs/samplers.md for the proofs)."""

from __future__ import annotations

from flint import arb

from privloss.adjacency import ADD_REMOVE, REPLACE_ONE
from privloss.certificates.balls import need
from privloss.certificates.pairs.base import NOTHING, NOTHING_SAMPLED, Named, Pair, Table
from privloss.certificates.pairs.densities import folded_density, sampled_density
from privloss.certificates.pairs.gaussian import SHUFFLED
from privloss.certificates.pairs.noise import Step, refuse
from privloss.certificates.pairs.outcomes import Outcomes, above, plain_rows
from privloss.certificates.pairs.piece import Piece
from privloss.certificates.pairs.tables import table_rows
from privloss.certificates.pairs.unsampled import unsampled

_SAMPLE = "Poisson sample: (1-q) Q + q P against Q, both directions, of: "


def sampled(step: Step, sampling: Step, adjacency: str) -> Named:
    """The pair of a step on a sample."""
    scheme, kind = sampling["scheme"], step["mechanism"]
    if scheme == "poisson" and adjacency != REPLACE_ONE:
        return _poisson(step, arb(float(sampling["rate"])), adjacency)
    if scheme == "fixed-size" and adjacency == REPLACE_ONE:
        return _fixed_size(step, sampling["n"], sampling["m"], adjacency)
    if scheme == "shuffle" and adjacency != ADD_REMOVE:
        plain = unsampled(step, adjacency)
        return Named(SHUFFLED + plain.theorem, plain.pairs, NOTHING, plain.symmetric)
    raise refuse(f"{kind!r} with {scheme!r} sampling under {adjacency}")


def _poisson(step: Step, rate: arb, adjacency: str) -> Named:
    if rate == 0:
        return NOTHING_SAMPLED
    if rate == 1:
        return unsampled(step, adjacency)
    theorem, pairs = _sampled_pairs(step, rate, adjacency)
    return Named(_SAMPLE + theorem, pairs, _attained(step, rate, adjacency))


def _fixed_size(step: Step, n: int, m: int, adjacency: str) -> Named:
    """The symmetric pair; attained by a batch of records that are all alike but for the one replaced."""
    if m == n:
        return unsampled(step, adjacency)
    if step["mechanism"] in ("custom", "truncated-gaussian", "zcdp"):
        raise refuse(f"a batch of fixed size of {step['mechanism']!r}")
    rate = arb(m) / arb(n)
    theorem, pairs = _sampled_pairs(step, rate, adjacency)
    folded, attained = _symmetric_pair(step, rate, adjacency), _attained(step, rate, adjacency)
    text = "fixed size: symmetric pair of a sample of: " + theorem
    return Named(text, (folded, folded), attained or pairs, symmetric=True)


def _rows(pair: Pair) -> list[tuple[arb, arb]]:
    return [(p, p * (-loss).exp()) for p, loss in pair.atoms if p > 0]


def _piece(step: Step, rate: arb, adjacency: str) -> tuple[Outcomes, Piece]:
    """A step with a density: its rows, and its interval."""
    named = unsampled(step, adjacency)
    pair = named.pairs[0]
    piece = pair.piece()
    if piece is None:
        raise refuse(f"a sample of {step['mechanism']!r}")
    return plain_rows(_rows(pair), named.theorem, only=pair.infinite), piece.at_rate(rate)


def _sampled_pairs(step: Step, rate: arb, adjacency: str) -> tuple[str, tuple[Pair, Pair]]:
    """Theorem, and both directions."""
    rows = table_rows(step, adjacency)
    if rows is not None:
        return rows.theorem, rows.sampled(rate).named().pairs
    rows, piece = _piece(step, rate, adjacency)
    return rows.theorem, sampled_density(rows, piece)


def _symmetric_pair(step: Step, rate: arb, adjacency: str) -> Pair:
    """The losses above 0 of the sampled pair, and their mirror images."""
    rows = table_rows(step, adjacency)
    if rows is None:
        return folded_density(*_piece(step, rate, adjacency))
    mixed = rows.sampled(rate)
    kept = above(mixed.rows)
    middle = 1 - mixed.only_p - sum((p + q for p, q in kept), arb(0))
    return Table([*kept, *((q, p) for p, q in kept), (middle, middle)], mixed.only_p, mixed.dropped_p)


def _attained(step: Step, rate: arb, adjacency: str) -> tuple[Pair, Pair] | None:
    """A sample of the attained pair, where that is not the pair itself."""
    plain = unsampled(step, adjacency).attained
    if plain is None:
        return None
    need(plain[0].atoms_only, "plan: a sample of this step has no attained pair")
    return plain_rows(_rows(plain[0]), "", symmetric=False).sampled(rate).named().pairs
