"""A privacy statement of a training run, in words that can be printed beside a model.

>>> from privloss.planning.statement import statement
>>> said = statement(dataset_size=60_000, batch_size=256, noise_multiplier=1.1, epochs=10, delta=1e-5, people=3)
>>> [(row.sampling, row.adjacency, round(row.example.upper, 3), round(row.user.upper, 3)) for row in said.rows]
[('shuffle', 'zero-out', 15.783, 73.161), ('poisson', 'add-remove', 0.92, 3.127)]

Without a sampler both are stated: whoever reads the statement must know which one ran. Each is stated under
add-remove, or, where that has no proven bound, under zero-out; a row names its own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from privloss.adjacency import ADD_REMOVE, ZERO_OUT
from privloss.answers import exact
from privloss.errors import Unsupported
from privloss.mechanisms.base import Mechanism, Plan, Sampled
from privloss.mechanisms.kinds import SCHEMES
from privloss.numerics import check
from privloss.numerics.bound import Bound
from privloss.planning.dp_sgd import DpSgd, dp_sgd
from privloss.theorems import group

EACH = ("shuffle", "poisson")  # the two that are usually claimed
_WIDTH = 80


@dataclass(frozen=True)
class Row:
    """One sampler: epsilon for an example, and for a user (None: no bound on examples per user; or refused)."""

    sampling: str
    what: str
    adjacency: str
    example: Bound
    user: Bound | None
    refused: str = ""

    def to_dict(self) -> dict[str, Any]:
        user = None if self.user is None else {"lower": self.user.lower, "upper": self.user.upper}
        return {
            "sampling": self.sampling,
            "adjacency": self.adjacency,
            "example": {"lower": self.example.lower, "upper": self.example.upper},
            "user": user,
            **({"refused": self.refused} if self.refused else {}),
        }


@dataclass(frozen=True)
class Statement:
    """What may be printed; `str()` is the text."""

    run: DpSgd
    noise_multiplier: float
    epochs: float
    delta: float
    people: int | None
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "dataset_size": self.run.dataset_size,
            "batch_size": self.run.batch_size,
            "noise_multiplier": self.noise_multiplier,
            "epochs": self.epochs,
            "delta": self.delta,
            "max_examples_per_user": self.people,
            "rows": [row.to_dict() for row in self.rows],
        }

    def __str__(self) -> str:
        return "\n\n".join(self._paragraphs())

    def _paragraphs(self) -> Iterator[str]:
        users = "no bound on number of examples per user"
        if self.people is not None:
            users = f"at most {self.people} examples per user"
        yield textwrap.fill(
            f"DP-SGD performed over {self.run.dataset_size} examples with {self.run.batch_size} examples per "
            f"iteration, noise multiplier {self.noise_multiplier:g} for {self.epochs:g} epochs without microbatching, "
            f"and {users}.",
            _WIDTH,
        )
        yield "This privacy guarantee protects the release of all model checkpoints in addition\nto the final model."
        yield f"Example-level DP at delta = {self.delta:g}, proven upper ends:\n" + "\n".join(
            _line(row, row.example) for row in self.rows
        )
        if self.people is None:
            yield textwrap.fill(
                "No user-level privacy guarantee is possible without a bound on the number of examples per user.",
                _WIDTH,
            )
        else:
            yield f"User-level DP at delta = {self.delta:g}, proven upper ends:\n" + "\n".join(
                _line(row, row.user) for row in self.rows
            )
        if len(self.rows) > 1:
            yield textwrap.fill(
                "Which of these holds depends on how batches were drawn; a value for a sampler that did not run says "
                "nothing about the run.",
                _WIDTH,
            )


def statement(
    *,
    dataset_size: int,
    batch_size: int,
    noise_multiplier: float,
    epochs: float,
    delta: float,
    people: int | None = None,
    sampling: str | None = None,
    adjacency: str | None = None,
    max_batch_size: int | None = None,
) -> Statement:
    """The statement of a run: for the sampler given, or for shuffled epochs and for Poisson samples."""
    most = None if people is None else check.count("people", people)
    at = check.number("delta", delta, low=0, high=1)

    def run(name: str, under: str) -> DpSgd:
        return dp_sgd(
            dataset_size=dataset_size, batch_size=batch_size, noise_multiplier=noise_multiplier, sampling=name,
            epochs=epochs, adjacency=under, max_batch_size=max_batch_size,
        )  # fmt: skip

    rows, runs = [], []
    for name in EACH if sampling is None else (sampling,):
        tried = [run(name, under) for under in ((ADD_REMOVE, ZERO_OUT) if adjacency is None else (adjacency,))]
        found = next((made for made in tried if made.plan.supported()), tried[0])
        rows.append(_row(found, most, at))
        runs.append(found)
    return Statement(runs[0], float(noise_multiplier), float(epochs), at, most, tuple(rows))


def _row(run: DpSgd, people: int | None, delta: float) -> Row:
    example = exact.one_epsilon(run.plan, delta)
    user, refused = None, ""
    if people is not None:
        try:
            user = _user(run, people, delta, example)
        except Unsupported as problem:
            refused = str(problem)
    what = run.told[1].removeprefix("sampling: ")
    return Row(run.sampling, what, run.plan.adjacency, example, user, refused)


def _user(run: DpSgd, people: int, delta: float, example: Bound) -> Bound:
    """Epsilon for a user with up to so many examples.

    By the epoch, no amplification claimed: given who goes where, batch i has k_i of the user's examples, their sum at
    most k. The epoch is Gaussian noise at a distance whose square is the sum of the k_i^2 <= k^2: at most that of one
    release with all of them in it. Below: a user may have a single example.
    """
    if people == 1:
        return example
    if not SCHEMES[run.sampling].epochs:
        return exact.one_epsilon(group.plan(run.plan, people=people), delta)
    plain = tuple((_inside(m), n) for m, n in run.plan.steps)
    found = exact.one_epsilon(group.plan(Plan(plain, run.plan.adjacency), people=people), delta)
    return Bound(example.lower, found.upper, found.method, found.notes)


def _inside(mechanism: Mechanism) -> Mechanism:
    return mechanism.mechanism if isinstance(mechanism, Sampled) else mechanism


def _line(row: Row, found: Bound | None) -> str:
    name = f"    {row.sampling}, {row.adjacency}:"
    if found is None:
        return f"{name} not stated: {row.refused}"
    return f"{name:<40}epsilon <= {_up(found.upper):>12}   {found}"


def _up(value: float) -> str:
    """Three decimals, rounded up; infinity as it is."""
    if value == float("inf"):
        return "inf"
    return str(Decimal(value).quantize(Decimal("0.001"), rounding=ROUND_CEILING))
