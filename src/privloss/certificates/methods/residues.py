"""Uses of one kind of Laplace noise: all residues, a closed form (docs/certificates.md, section 9)."""

from __future__ import annotations

import math

from flint import acb_poly, arb

from privloss.certificates.balls import Rejected, Use, need, whole
from privloss.certificates.budget import charge
from privloss.certificates.methods.bounds import DeltaBounds, Enclosure
from privloss.certificates.pairs.base import Steps


def by_residues(steps: Steps, use: Use) -> DeltaBounds:
    """k uses of a pair with atoms at +-e and a density height e^(x/2) between: M(z)^k is a sum of
    e^(jez) / (z + 1/2)^m, and the integral over Re z = c of each over z (z+1) the sum of its residues."""
    pair, k = steps[0]
    if len(steps) > 1 or pair.laplace is None:
        raise Rejected("residues: needs one kind of Laplace noise")
    need(k <= 100_000, "residues: too many uses")
    (e, up, height), orders = pair.laplace, min(whole(use, "most", 1000), k)
    down = up * (-e).exp()
    atoms, density = acb_poly([down, up]), acb_poly([-height * (-e / 2).exp(), height * (e / 2).exp()])
    charge(12 * (k + orders) * (orders + 1) + 0.004 * k * k)  # a power of degree k, whose terms differ widely
    # the chance that more than `most` of the losses come from the density is left to the upper end
    share = 1 - up - down
    rest = 1 - sum((math.comb(k, m) * share**m * (1 - share) ** (k - m) for m in range(orders + 1)), arb(0))
    powers = [atoms ** (k - orders)]
    for _ in range(orders):
        powers.append(powers[-1] * atoms)
    rows, product = [], acb_poly([1])
    for m in range(orders + 1):
        rows.append([x.real * math.comb(k, m) for x in (product * powers[orders - m]).coeffs()])
        product *= density

    def read(x: arb) -> Enclosure:
        charge(4 * (k + 1) * (orders + 2))
        total = arb(0)
        for j in range(k + 1):
            s = ((2 * j - k) * e - x).max(arb(0))
            if s == 0:
                continue
            root = term = (-s / 2).exp()
            now, after = 1 - root * root, 2 * (1 - root) ** 2  # the sums of residues for m = 0 and m = 1
            for m in range(orders + 1):
                if j < len(rows[m]):
                    total += rows[m][j] * now
                term = term * s / (m + 1)  # e^(-s/2) s^(m+1)/(m+1)!
                now, after = after, 4 * (now - term)
        return total, total + (rest.max(arb(0)) if orders < k else 0)

    return read
