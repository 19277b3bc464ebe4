"""Matrix mechanisms, the noise of DP-FTRL: C x + noise is released, x_t the sum of contributions at step t, and
everything computed from it (prefix sums, x + C^-1 noise, momentum) is post-processing. Proofs: docs/matrix.md.

Which steps a record may take part in is part of what ran:

- ``single``: one step. ``fixed-epochs``: j, j+b, j+2b, ... for some j, b = `separation` steps per epoch.
  ``min-separation``: any steps at least `separation` apart, at most `times` of them.
- ``cyclic-poisson``: a class of `separation`; class j is Poisson sampled at rate `rate` at the steps j, j+b, ....
- ``balls-in-bins``: one of b = `separation` bins, chosen at random for the whole run.

>>> run = MatrixMechanism.square_root(steps=1000, noise_multiplier=8.0, participation="min-separation", separation=200)
>>> run
MatrixMechanism(toeplitz=<1000 coefficients>, participation='min-separation', separation=200, noise_multiplier=8.0)
>>> run.epsilon(1e-6)
Bound(3.0039998008..., 3.0039998008...)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from privloss.adjacency import ADD_REMOVE
from privloss.errors import InvalidInput, Unsupported
from privloss.losses.matrix import families, steps
from privloss.losses.matrix.sensitivity import EPOCHS, SEPARATED, SINGLE, Participation, Squared, squared_sensitivity
from privloss.losses.matrix.strategy import MOST_TOEPLITZ, Dense, Strategy, Toeplitz
from privloss.losses.step import Step
from privloss.mechanisms import noise
from privloss.mechanisms.base import Mechanism, set_field
from privloss.mechanisms.kinds import Kind, add_kind
from privloss.mechanisms.parameters import number, numbers, whole, word
from privloss.mechanisms.rows import Matrix, rows
from privloss.numerics import check

CYCLIC, BINS = "cyclic-poisson", "balls-in-bins"
PARTICIPATIONS = (SINGLE, EPOCHS, SEPARATED, CYCLIC, BINS)
PUBLIC, SECRET = "public", "secret"
_LEAST, _QUIETEST = 1e-50, 1e90  # largest entry of C; noise in units of a contribution: squares are doubles
_GOES_WITH = {  # parameters of the pattern: needed, and possible
    SINGLE: ((), ()),
    EPOCHS: (("separation",), ()),
    SEPARATED: (("separation",), ("times",)),
    CYCLIC: (("separation", "rate"), ("classes", "class_size", "most")),
    BINS: (("separation",), ()),
}
_NOT_ON_A_SAMPLE = (
    "which steps a record takes part in is part of a matrix mechanism, and a sample at every step is a participation: "
    "participation = 'cyclic-poisson' or 'balls-in-bins'."
)


@dataclass(frozen=True, repr=False, kw_only=True)
class MatrixMechanism(Mechanism):
    """C x + N(0, sigma^2), C by rows or Toeplitz, contributions of norm at most C = `sensitivity` at every step."""

    kind: ClassVar[str] = "matrix-mechanism"
    matrix: Matrix | None = rows(  # noqa: RUF009 (a field)
        default=None, description="C: a row for every release, a column for every step"
    )
    toeplitz: Sequence[float] | None = numbers(
        low=float("-inf"), default=None, description="first column of a lower triangular Toeplitz C"
    )
    steps: int | None = whole(default=None, description="of a Toeplitz C, where they are more than its coefficients")
    participation: str = word(PARTICIPATIONS)
    separation: int | None = whole(
        default=None, description="steps per epoch, least distance of a record's steps, classes or bins"
    )
    times: int | None = whole(default=None, description="the most steps a record takes part in")
    rate: float | None = number(high=1.0, default=None, description="of the Poisson samples of a class")
    classes: str = word((PUBLIC, SECRET), PUBLIC)
    class_size: int | None = whole(default=None, description="records of the largest class, where samples are cut down")
    most: int | None = whole(default=None, description="the largest sample of a class that is kept")
    noise_multiplier: float | None = number(
        default=None, description="noise (per coordinate, of one row) / bound on one record's contribution to one step"
    )
    sigma: float | None = number(default=None)
    sensitivity: float | None = number(
        above=True, default=None, description="of the sum of one step, l2, under the plan's adjacency"
    )

    def __post_init__(self) -> None:
        if (self.matrix is None) == (self.toeplitz is None):
            raise InvalidInput("matrix, toeplitz: give exactly one of them.")
        if self.matrix is not None and self.steps is not None:
            raise InvalidInput(f"steps = {self.steps!r}: goes with toeplitz; a matrix has a column for every step.")
        noise.exactly_one(self.noise_multiplier, "sigma", self.sigma, self.sensitivity)
        super().__post_init__()
        self._check_size()
        self._check_pattern()
        if self.toeplitz is not None:
            given = len(self.toeplitz)
            set_field(self, "steps", given if self.steps is None else self.steps)
            if (self.steps or 0) < given:
                raise InvalidInput(f"steps = {self.steps!r}: there are {given} coefficients already.")

    def _check_size(self) -> None:
        """The largest entry; what underflows beside it is nothing, as sens is at least that entry."""
        entries = self.toeplitz if self.matrix is None else (float(np.abs(self.matrix.array).max()),)
        largest = max(map(abs, entries or ()))
        if largest > 0 and not _LEAST <= largest <= 1 / _LEAST:
            raise InvalidInput(f"C: its largest entry is {largest:g} in size; must be 0, or from {_LEAST:g} to 1e50.")

    def _check_pattern(self) -> None:
        needed, possible = _GOES_WITH[self.participation]
        given = {n: getattr(self, n) for n in ("separation", "times", "rate", "class_size", "most")}
        for name, value in given.items():
            if value is None and name in needed:
                raise InvalidInput(f"{name} = None: participation = {self.participation!r} needs it.")
            if value is not None and name not in (*needed, *possible):
                raise InvalidInput(f"{name} = {value!r}: does not go with participation = {self.participation!r}.")
        if (self.class_size is None) != (self.most is None):
            raise InvalidInput(f"class_size = {self.class_size!r}, most = {self.most!r}: go together.")
        if self.classes != PUBLIC and "classes" not in possible:
            raise InvalidInput(f"classes = {self.classes!r}: goes with participation = {CYCLIC!r}.")

    # -- families ------------------------------------------------------------------------------------------------------

    @classmethod
    def square_root(cls, *, steps: int, bands: int | None = None, **rest: Any) -> MatrixMechanism:
        """C with C C = prefix sums; with `bands`, cut off after so many diagonals."""
        size = _size(steps)
        kept = size if bands is None else min(check.count("bands", bands), size)
        return cls(toeplitz=_tuple(families.square_root(kept)), steps=size, **rest)

    @classmethod
    def blt(cls, *, omega: Sequence[float], theta: Sequence[float], steps: int, **rest: Any) -> MatrixMechanism:
        """Buffered linear Toeplitz: c_0 = 1, c_j = sum_i omega_i theta_i^(j-1)."""
        if len(omega) != len(theta) or not len(omega):
            raise InvalidInput(f"omega, theta: {len(omega)} and {len(theta)} entries; must be equally many.")
        size = _size(steps)
        weights = np.array([check.number(f"omega[{i}]", x) for i, x in enumerate(omega)])
        decays = np.array([check.number(f"theta[{i}]", x, low=0, high=1) for i, x in enumerate(theta)])
        return cls(toeplitz=_tuple(families.blt(weights, decays, size)), steps=size, **rest)

    @classmethod
    def banded_inverse(cls, *, noise: Sequence[float], steps: int, **rest: Any) -> MatrixMechanism:
        """Noise that is a moving sum, noise_t = sum_j noise[j] z_(t-j): C is the inverse."""
        given = np.array([check.number(f"noise[{i}]", x) for i, x in enumerate(noise)])
        if not len(given) or given[0] == 0:
            raise InvalidInput("noise: needs coefficients, and the first one must not be 0.")
        found = families.banded_inverse(given, _size(steps))
        if not bool(np.isfinite(found).all()):
            raise InvalidInput("noise: the coefficients of C grow beyond the range of doubles.")
        return cls(toeplitz=_tuple(found), **rest)

    @classmethod
    def banded_inverse_square_root(cls, *, bands: int, steps: int, **rest: Any) -> MatrixMechanism:
        """BISR: noise with the first `bands` coefficients of the inverse square root."""
        kept = min(check.count("bands", bands), _size(steps))
        return cls.banded_inverse(noise=families.inverse_square_root(kept).tolist(), steps=steps, **rest)

    # -- what the plan file and people see -----------------------------------------------------------------------------

    @property
    def strategy(self) -> Strategy:
        """C."""
        if self.matrix is not None:
            return _dense(self.matrix)
        return Toeplitz(np.array(self.toeplitz), self.steps or 0)

    def sensitivity_of(self) -> tuple[float, float]:
        """Both ends of the sensitivity of C x for contributions of norm at most 1, without amplification."""
        found = _squared(self)
        return found.low**0.5 * (1 - 1e-15), found.high**0.5 * (1 + 1e-15)

    def to_dict(self) -> dict[str, Any]:
        found = {name: v.array.tolist() if isinstance(v, Matrix) else v for name, v in super().to_dict().items()}
        if self.toeplitz is not None and self.steps == len(self.toeplitz):
            del found["steps"]
        return found

    def __repr__(self) -> str:
        shown = {n: v for n, v in self._given() if n != "steps" or self.steps != len(self.toeplitz or ())}
        if self.toeplitz is not None and len(self.toeplitz) > 4:
            shown["toeplitz"] = f"<{len(self.toeplitz)} coefficients>"
        parts = (f"{n}={v if n == 'toeplitz' and isinstance(v, str) else repr(v)}" for n, v in shown.items())
        return f"MatrixMechanism({', '.join(parts)})"


def _size(steps: int) -> int:
    found = check.count("steps", steps)
    if found > MOST_TOEPLITZ:
        raise InvalidInput(f"steps = {steps!r}: at most {MOST_TOEPLITZ} are supported.")
    return found


def _tuple(values: Any) -> tuple[float, ...]:
    return tuple(values.tolist())


@lru_cache(maxsize=8)  # what is found about a matrix is kept with it
def _dense(matrix: Matrix) -> Dense:
    return Dense(matrix.array)


@lru_cache(maxsize=64)
def _squared_of(key: tuple[Any, ...], how: Participation) -> Squared:
    matrix, toeplitz, steps = key
    return squared_sensitivity(_dense(matrix) if matrix else Toeplitz(np.array(toeplitz), steps), how)


def _squared(m: MatrixMechanism) -> Squared:
    kind = EPOCHS if m.participation in (CYCLIC, BINS) else m.participation
    return _squared_of((m.matrix, m.toeplitz, m.steps), Participation(kind, m.separation or 1, m.times))


def _pattern(m: MatrixMechanism, adjacency: str) -> str:
    """How records come to their steps, and what of that is assumed."""
    b = m.separation
    text = {
        SINGLE: "every record takes part in one step",
        EPOCHS: f"every record takes part in the same one of {b} steps of every epoch",
        SEPARATED: f"every record's steps are at least {b} apart" + (f", at most {m.times}" if m.times else ""),
        CYCLIC: f"{b} classes of records ({m.classes}), each Poisson sampled at rate {m.rate!r} every {b} steps"
        + (f", of {m.class_size} records at most {m.most} kept at random" if m.most else ""),
        BINS: f"every record keeps one of {b} bins for the whole run, chosen uniformly and independently of the others",
    }[m.participation]
    ruled = "a rule that ignores the data chooses them"
    if adjacency == ADD_REMOVE:
        ruled += ", and a record more or less moves no other (hashing, time of arrival; not batches cut from an order)"
    return f"{text}; {ruled}; a row of C x is released after the contributions in it were chosen"


def _refuse_moved_records(m: MatrixMechanism, adjacency: str) -> None:
    if adjacency == ADD_REMOVE and m.participation == EPOCHS:
        raise Unsupported(
            f"{m!r} under add-remove: where epochs repeat one order a record more or less moves others to other steps; "
            "ask under zero-out or replace-one."
        )


def _step(m: MatrixMechanism, adjacency: str) -> Step:
    _refuse_moved_records(m, adjacency)
    said = noise.said(m.noise_multiplier, m.sigma)
    size = noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency)
    if said > _QUIETEST * size:
        raise Unsupported(f"{m!r}: noise / contribution is supported up to {_QUIETEST:g}.")
    text = f"matrix-mechanism: at every step {noise.sensitivity_text(m.noise_multiplier, m.sensitivity, adjacency)}"
    told = steps.Noise(size / said if said > 0 else float("inf"), adjacency, f"{text}; {_pattern(m, adjacency)}")
    if m.participation == CYCLIC:
        cut = None if m.class_size is None or m.most is None else (m.class_size, m.most)
        return steps.cyclic(m.strategy, steps.Classes(m.separation or 1, m.rate or 0.0, m.classes == SECRET, cut), told)
    if m.participation == BINS:
        return steps.balls_in_bins(m.strategy, m.separation or 1, told)
    return steps.released(_squared(m), told)


def _louder(m: MatrixMechanism, factor: float) -> MatrixMechanism:
    if m.noise_multiplier is not None:
        return dataclasses.replace(m, noise_multiplier=m.noise_multiplier * factor)
    return dataclasses.replace(m, sigma=(m.sigma or 0.0) * factor)


def _grouped(m: MatrixMechanism, people: int, adjacency: str) -> MatrixMechanism | None:
    """All of them may have the same steps; on samples their coins differ."""
    if m.participation in (CYCLIC, BINS):
        return None
    if m.noise_multiplier is not None:
        return dataclasses.replace(m, noise_multiplier=m.noise_multiplier / people)
    return dataclasses.replace(m, sensitivity=people * (m.sensitivity or 1.0))


def _mu_squared(m: MatrixMechanism, adjacency: str) -> Fraction | None:
    """From the upper end of the sensitivity."""
    _refuse_moved_records(m, adjacency)
    if m.participation in (CYCLIC, BINS):
        return None
    said = noise.said(m.noise_multiplier, m.sigma)
    if not said:
        raise Unsupported("plan: a step without noise has no price in GDP.")
    size = Fraction(noise.sensitivity(m.noise_multiplier, m.sensitivity, adjacency))
    return (size / Fraction(said)) ** 2 * Fraction(_squared(m).high)


_RUNS = ("participation", "separation?", "times?", "rate?", "classes?", "class_size?", "most?")
add_kind(
    Kind(
        "matrix-mechanism",
        MatrixMechanism,
        _step,
        forms=tuple(
            (*c, *_RUNS, *z)
            for c in (("matrix",), ("toeplitz", "steps?"))
            for z in (("noise_multiplier",), ("sigma", "sensitivity?"))
        ),
        louder=_louder,
        grouped=_grouped,
        mu_squared=_mu_squared,
        not_on_a_sample=_NOT_ON_A_SAMPLE,
    )
)
