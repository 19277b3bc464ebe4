"""What is drawn: the curves of a plan, and what is left of a dataset's budget over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from privloss.service.pages import words
from privloss.service.pages.charts import Axis, Chart, Curve, Mark, Rule, rows

_LOWEST = 1e-40  # a delta below is drawn there


@dataclass(frozen=True)
class Drawn:
    """A chart, what it means, and its numbers as a table."""

    title: str
    svg: Markup
    means: str
    columns: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]


def profile(found: Mapping[str, Any], epsilon: float, delta: float) -> Drawn:
    """delta(epsilon)."""
    eps, upper = found["epsilon"], [min(max(d, 0.0), 1.0) for d in found["upper"]]
    seen = [(e, d) for e, d in zip(eps, upper, strict=True) if d > _LOWEST]
    least = min((d for _, d in seen), default=1.0)
    floor = 10.0 ** math.floor(math.log10(max(min(least, max(delta, _LOWEST) / 30, 0.1), _LOWEST)))
    finite = math.isfinite(epsilon)
    marks = (Mark((epsilon, delta), f"({words.up(epsilon)}, {words.up(delta, 2)})"),) if finite and delta > 0 else ()
    means = (
        "Every point of the curve is a promise that holds at the same time: any conclusion is at most e^epsilon times "
        "as likely, plus delta."
    )
    chart = Chart(
        "profile", "Delta for every epsilon", _told(eps, upper, epsilon, delta), Axis("epsilon", 0.0, eps[-1]),
        Axis("delta", floor, 1.0, log=True), (Curve(tuple(seen)),), marks,
        (Rule(delta, "your delta"),) if delta >= floor else (),
    )  # fmt: skip
    table = tuple(_row(eps[i], found["lower"][i], upper[i]) for i in rows(len(eps)))
    return Drawn(chart.title, chart.svg(), means, ("epsilon", "delta, at least", "delta, at most"), table)


def _row(epsilon: float, low: float, high: float) -> tuple[str, str, str]:
    """What holds at the decimal that is shown, which is a double only nearly: where epsilon grows by t, delta falls by
    at most e^t - 1, since P[S] <= 1 and so Q[S] <= e^-epsilon for the S that it is reached at."""
    at = Fraction(f"{epsilon:.4g}")
    off = 2 * abs(at - Fraction(epsilon))
    return (
        words.up(at),
        words.down(max(Fraction(low) - off, Fraction(0))),
        words.up(min(Fraction(high) + off, Fraction(1))),
    )


def _told(eps: Sequence[float], upper: Sequence[float], epsilon: float, delta: float) -> str:
    middle = len(eps) // 2
    said = f"It falls from {words.up(upper[0], 3)} at epsilon 0 to {words.up(upper[-1], 3)} at {words.up(eps[-1], 3)}"
    here = f"; at your delta, {words.up(delta, 3)}, epsilon is {words.up(epsilon, 4)}" if math.isfinite(epsilon) else ""
    return (
        f"{said}, through {words.up(upper[middle], 3)} at {words.up(eps[middle], 3)}{here}. The table has the numbers."
    )


def attacks(found: Mapping[str, Any], alarms: float) -> Drawn:
    """The trade-off curve."""
    rates, misses = found["alarms"], found["misses"]
    points = tuple(zip(rates, misses, strict=True))
    mirrored = tuple((1 - a, 1 - m) for a, m in points)
    at = misses[rates.index(alarms)]
    chart = Chart(
        "attacks", "What any attack can achieve",
        f"The share of misses that no attack can go below, for every share of false alarms: from "
        f"{words.rate(misses[0])} without a false alarm, through {words.rate(at)} at {words.rate(alarms)} "
        "false alarms, to none. Guessing lies on the straight line from 100 % to 100 %. The table has the numbers.",
        Axis("false alarms", 0.0, 1.0), Axis("misses", 0.0, 1.0),
        (
            Curve((*points, *mirrored), "area", closed=True),
            Curve(((0.0, 1.0), (1.0, 0.0)), "guess"),
            Curve(points),
        ),
        (Mark((alarms, at), f"at {words.rate(alarms)}: misses {words.rate(at)} or more"),),
    )  # fmt: skip
    means = (
        "Whoever tries to tell from the outcome whether the data are in it lies in the shaded area: fewer misses cost "
        "more false alarms. On the dashed line one only guesses."
    )
    shown = [0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.5, 0.8, 0.9, 1.0]  # as doubles none is below its decimal
    table = tuple(
        (words.rate(a), f"{words.down(100 * Fraction(m))} %", words.percent(1 - Fraction(m)))
        for a, m in points
        if a in shown
    )
    return Drawn(chart.title, chart.svg(), means, ("false alarms", "misses, at least", "finds, at most"), table)


def left(moments: Sequence[tuple[float, float, float]], cap: float, freezes: Sequence[float], part: str) -> Drawn:
    """What was left of a budget over time: (when, committed, held); the last is now."""
    first, last = moments[0][0], max(moments[-1][0], moments[0][0] + 60.0)
    names = tuple((at, words.day(at)) for at in (first, last))
    spent = tuple((at, max(cap - committed - held, 0.0)) for at, committed, held in moments)
    sure = tuple((at, max(cap - committed, 0.0)) for at, committed, _ in moments)
    held = moments[-1][2]
    about = (
        f"From {words.moment(first)} to {words.moment(last)}. Of {words.up(cap)} there were "
        f"{words.down(spent[0][1])} left at the beginning and {words.down(spent[-1][1])} at the end, "
        f"{words.up(held)} of them held. {len(freezes)} freezes. The history has the numbers."
    )
    chart = Chart(
        "left", f"What was left ({part})", about, Axis("", first, last, names=names),
        Axis(part, 0.0, cap or 1.0),
        (Curve(sure, "faint", steps=True), Curve(spent, steps=True)),
        rules=tuple(Rule(at, "frozen" if at == freezes[0] else "", upright=True) for at in freezes),
    )  # fmt: skip
    means = (
        "The solid line is what may still be spent. The thin dashed line above it leaves out what is held, which comes "
        "back if an analysis is given up."
    )
    every = [moments[i] for i in rows(len(moments), 25)]
    table = tuple(
        (words.moment(at), words.up(done), words.up(held), words.down(max(cap - done - held, 0.0)))
        for at, done, held in every
    )
    return Drawn(chart.title, chart.svg(), means, ("when", "spent", "held", "left"), table)


def amount(value: Any) -> float:
    """An exact text, for drawing only."""
    return float(Fraction(value))
