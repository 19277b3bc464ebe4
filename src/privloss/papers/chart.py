"""Numbers for a paper: an axis and intervals, as a picture, a frame or a LaTeX table.

>>> import privloss as pl
>>> chart = (pl.Gaussian(1.1).poisson(0.01) * 10_000).plot("steps", delta=1e-6, points=[100, 10_000])
>>> print(chart.to_latex(digits=4))
% Epsilon by steps at delta = 1e-06, add-remove: Gaussian(noise_multiplier=1.1).poisson(0.01)
\\begin{tabular}{rrr}
\\hline
steps & $\\varepsilon$, lower end & $\\varepsilon$, upper end \\\\
\\hline
100 & 0.7080 & 0.7081 \\\\
10\\,000 & 5.806 & 5.807 \\\\
\\hline
\\end{tabular}
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path
from typing import Any

from privloss.errors import InvalidInput, MissingExtra
from privloss.numerics import check
from privloss.numerics.bound import Bound, shortened
from privloss.papers import canvas

_COLOUR, _SHADE = "#4c72b0", "#c44e52"
_MOST_DIGITS = 17
_TITLE = textwrap.TextWrapper(width=80, max_lines=3, placeholder=" ...")
_SEEN = 1e-3  # a band as high as this part of the axis is seen


@dataclass(frozen=True)
class Quantity:
    """A name for columns, and in formulas."""

    name: str
    latex: str


EPSILON, DELTA = Quantity("epsilon", r"$\varepsilon$"), Quantity("delta", r"$\delta$")


@dataclass(frozen=True)
class Chart:
    """Intervals for y over x, which are numbers or names. `quoted` is the end that may be quoted alone: for epsilon and
    delta the upper one, for the error of an attack the lower one."""

    title: str
    x: Quantity
    y: Quantity
    places: tuple[float | str, ...]
    bounds: tuple[Bound, ...]
    quoted: str = "upper"
    log_x: bool = False
    log_y: bool = False
    attacks: bool = False  # y is an error: every attack lies above the curve, and below its mirror image
    about: str = ""  # what ran

    def rows(self) -> list[dict[str, Any]]:
        """One record per place."""
        return [
            {self.x.name: place, f"{self.y.name}_lower": b.lower, f"{self.y.name}_upper": b.upper, "method": b.method}
            for place, b in zip(self.places, self.bounds, strict=True)
        ]

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        try:
            import pandas
        except ImportError:
            raise MissingExtra("to_frame needs pandas: pip install 'privloss[frames]' (or use rows()).") from None
        return pandas.DataFrame(self.rows())

    def to_latex(self, digits: int = 4) -> str:
        """A table: lower ends rounded down and upper ends rounded up, to so many significant digits; what it shows is a
        comment above it."""
        if check.count("digits", digits) > _MOST_DIGITS:
            raise InvalidInput(f"digits = {digits!r}: a double has at most {_MOST_DIGITS}.")
        lines = [
            f"{_place(place)} & {_number(b.lower, digits, ROUND_FLOOR)} & {_number(b.upper, digits, ROUND_CEILING)}"
            for place, b in zip(self.places, self.bounds, strict=True)
        ]
        columns = "lrr" if any(isinstance(place, str) for place in self.places) else "rrr"
        head = f"{self.x.latex} & {self.y.latex}, lower end & {self.y.latex}, upper end"
        body = "\n".join(f"{line} \\\\" for line in lines)
        said = ": ".join(text for text in (self.title, self.about) if text)
        start = f"% {said}\n" if said else ""
        return (
            f"{start}\\begin{{tabular}}{{{columns}}}\n\\hline\n{head} \\\\\n\\hline\n{body}\n\\hline\n\\end{{tabular}}"
        )

    def save(self, path: str | Path) -> None:
        """A picture: .png, .svg or .pdf."""
        target = Path(path)
        if target.suffix.lower() not in canvas.PICTURES or not target.parent.is_dir():
            raise InvalidInput(f"path = {str(path)!r}: must end in {', '.join(canvas.PICTURES)}, in a directory.")
        with canvas.picture(target) as (drawn, axis):
            if any(isinstance(place, str) for place in self.places):
                self._bars(axis)
            else:
                self._lines(axis)
            drawn.suptitle("\n".join((self.title, *_TITLE.wrap(self.about))), fontsize=10)
            canvas.plain(axis)

    def _lines(self, axis: Any) -> None:
        """The curve of the quoted ends, and a band where the ends differ."""
        lower, upper = [b.lower for b in self.bounds], [b.upper for b in self.bounds]
        named = f"{self.y.name}, {self.quoted} end"
        band = max((u - low for low, u in zip(lower, upper, strict=True) if u < math.inf), default=0.0)
        wide = band > _SEEN * max((u for u in upper if u < math.inf), default=0.0)
        between = {"label": "between both ends"} if wide else {}
        axis.fill_between(self.places, lower, upper, color=_COLOUR, alpha=0.25, linewidth=0, **between)
        if self.attacks:  # none lies below the lower ends, and turned round none above their mirror image
            across = [*self.places, *(1 - float(place) for place in self.places)]
            up = [*lower, *(1 - end for end in lower)]
            axis.fill(across, up, color=_SHADE, alpha=0.12, linewidth=0, label="all attacks")
            axis.plot((0, 1), (1, 0), ":", color="#888888", label="guessing")
            axis.set_xlim(0, 1)
            axis.set_ylim(0, 1)
            axis.set_aspect("equal")
        axis.plot(self.places, upper if self.quoted == "upper" else lower, color=_COLOUR, label=named, linewidth=1.8)
        if self.log_x:
            axis.set_xscale("log")
        elif all(isinstance(place, int) for place in self.places):
            axis.xaxis.get_major_locator().set_params(integer=True)
        if self.log_y:
            axis.set_yscale("log")
        axis.set_xlabel(self.x.name)
        axis.set_ylabel(self.y.name)
        axis.legend(frameon=False, fontsize=9, loc="upper right" if self.attacks else "best")

    def _bars(self, axis: Any) -> None:
        """The upper ends, the longest above; infinite ones are left out of the picture and named."""
        shown = [(str(p), b.upper) for p, b in zip(self.places, self.bounds, strict=True)]
        most = max((v for _, v in shown if v < math.inf), default=1.0)
        sizes = [min(v, most) for _, v in shown]
        axis.barh(
            [p for p, _ in shown], sizes, color=[_SHADE if v > min(sizes) else _COLOUR for v in sizes], height=0.6
        )
        for row, (_, value) in enumerate(shown):
            axis.text(min(value, most), row, f" {shortened(value, 4, ROUND_CEILING)}", va="center", fontsize=8)
        if most > 50 * min(sizes) > 0:
            axis.set_xscale("log")
            axis.set_xlim(0.5 * min(sizes), 4 * most)
        else:
            axis.set_xlim(0, 1.15 * most)
        axis.invert_yaxis()
        axis.tick_params(axis="y", labelsize=8)
        axis.set_xlabel(f"{self.y.name}, upper end")


def _place(place: float | str) -> str:
    if isinstance(place, str):
        return "".join(f"\\{c}" if c in "&%_#$" else c for c in place)
    if place == int(place) and abs(place) < 1e15:
        return f"{int(place):,}".replace(",", "\\,")
    return _scientific(repr(place))


def _number(value: float, digits: int, rounding: str) -> str:
    """Exact numbers as they are; others with all digits asked for, zeros at the end too."""
    if math.isinf(value):
        return r"$\infty$"
    exact = Decimal(value)
    text = Context(prec=digits, rounding=rounding).create_decimal(exact)
    shown = text.normalize() if text == exact else text
    return _scientific(format(shown, "f" if -4 <= shown.adjusted() < _MOST_DIGITS or not shown else "e"))


def _scientific(text: str) -> str:
    digits, _, exponent = text.partition("e")
    return f"${digits}\\times10^{{{int(exponent)}}}$" if exponent else digits
