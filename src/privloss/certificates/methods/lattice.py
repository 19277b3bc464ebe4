"""Plans in which every loss takes finitely many values: on a lattice, or outcome by outcome (docs/certificates.md,
sections 6 and 7), and the bound by the largest loss, which others may have too."""

from __future__ import annotations

import math

from flint import acb, arb

from privloss.certificates.balls import Use, given, most, need, turning_sums, whole
from privloss.certificates.checker import (
    MOST_NODES,
    MOST_PRODUCTS,
    DeltaBounds,
    Enclosure,
    Pair,
    Steps,
    Table,
    images,
    product,
)

MOST_SUMS, MOST_PERIODS = 400_000, 10_000_000


def by_largest(steps: Steps, use: Use) -> DeltaBounds:
    """f(x) = 0 from the sum of the largest losses on."""
    total = arb(0)
    for pair, times in steps:
        top = pair.largest()
        need(top is not None, "largest: a step has no largest loss")
        total += times * (top if top is not None else arb(0))

    def read(x: arb) -> Enclosure:
        need(bool(x >= total), f"largest: {x.str(12)} is not surely >= {total.str(12)}")
        return arb(0), arb(0)

    return read


def by_lattice(steps: Steps, use: Use) -> DeltaBounds:
    """All losses moved to a lattice of spacing h: a finite line of N nodes, of which those beyond the first `evaluated`
    may be bounded instead. The sum of the moves is at most w, and f_lattice(x + w) <= f(x) <= f_lattice(x - w)."""
    c, h, count = given(use, "c"), given(use, "h"), whole(use, "N", MOST_PERIODS)
    last = min(whole(use, "evaluated", MOST_NODES), count // 2) if "evaluated" in use else count // 2
    length = h * count
    step = 2 * arb.pi() / length
    need(last <= MOST_NODES, "lattice: too many nodes")
    start, moved, rest, lattice = arb(0), arb(0), arb(1), list[tuple[Pair, int]]()
    for pair, times in steps:
        need(isinstance(pair, Table) and pair.atoms_only, "lattice: a step has more than atoms")
        atoms = pair.atoms  # type: ignore[attr-defined]
        first = min((loss for _, loss in atoms), key=lambda x: float(x.mid()))
        places = [round(float(((loss - first) / h).mid())) for _, loss in atoms]
        need(min(places) >= 0 and max(places) <= MOST_NODES, "lattice: the spacing is too small")
        need((last + 1) * (max(places) + 1) <= MOST_PRODUCTS, "lattice: too much work")
        gap = most(abs(loss - first - n * h) for (_, loss), n in zip(atoms, places, strict=True))
        coefficients = [arb(0)] * (max(places) + 1)
        for (mass, _), n in zip(atoms, places, strict=True):
            coefficients[n] += mass
        start, moved = start + times * first, moved + times * gap
        lattice.append((Shifted(coefficients, h), times))
        if last < count // 2:  # the bound is one for the losses where they were: |e^(z gap) - 1| <= e^(|z| gap) - 1
            there = pair.beyond_lattice(c, step * last, h)  # type: ignore[attr-defined]
            shift = pair.mgf(acb(c)).real * (((c + arb.pi() / h) * gap).exp() - 1)
            rest *= ((there + shift) * (-c * first).exp()) ** times
    nodes = [acb(c, n * step) for n in range(last + 1)]
    values = product(lattice, {}, c, step, last)
    alias = images(lattice, use, c, length)
    weight = [1 if n == 0 or 2 * n == count else 2 for n in range(last + 1)]  # M at -t is conjugate
    both = 1 / (1 - (-c * h).exp()) + 1 / (1 - (-(c + 1) * h).exp())  # >= |kernel|, as x <= at

    def read(x: arb) -> Enclosure:
        """The sum of p_j (1 - e^(x - jh)) over j >= j0, with its images; the right j0 is floor(x/h) + 1."""
        floors = [(x / h).lower().floor(), (x / h).upper().floor()]
        need(all(f.is_integer() for f in floors), "lattice: needs more precision")
        places = [int(f.unique_fmpz()) for f in floors]  # type: ignore[arg-type]
        need(places[1] <= places[0] + 3, "lattice: needs more precision")
        found, cut = arb(0), arb(0)
        for j in range(places[0] + 1, places[1] + 2):
            total, at = arb(0), j * h
            for value, z, n in zip(values, nodes, weight, strict=True):
                kernel = 1 / (1 - (-z * h).exp()) - (x - at).exp() / (1 - (-(z + 1) * h).exp())
                total += n * (value * (-z * at).exp() * kernel).real
            found = total / count if j == places[0] + 1 else found.union(total / count)
            cut = cut.max(rest * (-c * at).exp() * both) if last < count // 2 else cut
        return found - cut, found + cut

    return lambda x: (read(x - start + moved)[0] - alias(x - start + moved), read(x - start - moved)[1])


class Shifted(Pair):
    """Losses 0, h, 2h, ... with given probabilities."""

    def __init__(self, masses: list[arb], h: arb) -> None:
        self.masses = [(n, p) for n, p in enumerate(masses) if not p == 0]  # noqa: SIM201 (a ball that may be 0 counts)
        self.h = h

    def line(self, c: arb, step: arb, count: int, use: Use) -> list[acb]:
        weights = [p * (c * n * self.h).exp() for n, p in self.masses]
        return turning_sums(weights, [step * n * self.h for n, _ in self.masses], count)


def by_sum(steps: Steps, use: Use) -> DeltaBounds:
    """Every outcome of a plan with few: counts of each outcome, multinomial probabilities."""
    outcomes = [(arb(1), arb(0))]
    for pair, times in steps:
        need(isinstance(pair, Table) and pair.atoms_only, "sum: a step has other than finitely many losses")
        atoms = pair.atoms  # type: ignore[attr-defined]
        need(math.comb(times + len(atoms) - 1, times) * len(outcomes) <= MOST_SUMS, "sum: too many outcomes")
        counts = [(times, arb(1), arb(0))]  # uses left, probability of those made, their loss
        for i, (mass, loss) in enumerate(atoms):
            last = i == len(atoms) - 1
            counts = [
                (left - n, made * math.comb(left, n) * mass**n, total + n * loss)
                for left, made, total in counts
                for n in (range(left + 1) if not last else (left,))
            ]
        counts = counts if atoms else []
        outcomes = [(m * made, x + total) for m, x in outcomes for _, made, total in counts]

    def read(x: arb) -> Enclosure:
        total = sum((m * (1 - (x - loss).exp()).max(arb(0)) for m, loss in outcomes), arb(0))
        return total, total

    return read
