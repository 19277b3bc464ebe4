"""Charts as SVG inside a page: no script, no inline style (classes follow the page's colours), a title and a
description that are read aloud, and never a colour that says something alone.

A chart is drawn for a phone, 360 units wide, and grows with the page, so that its letters are never too small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup, escape

from privloss.service.pages import words

_WIDE, _HIGH = 360, 232
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 10, 22, 36
_LETTER = 5.6  # units of one, about
_TICKS = 6
_STEPS = (1, 2, 2.5, 5, 10)
_HATCH = 3  # units between the lines of what is held
_BAR_WIDE, _BAR_HIGH = 200, 16
Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`; `log` for powers of ten."""

    label: str
    low: float
    high: float
    log: bool = False
    names: tuple[tuple[float, str], ...] = ()  # ticks that are not numbers

    def share(self, value: float) -> float:
        """Where on the axis, 0 to 1."""
        at, low, high = (_log(x) if self.log else x for x in (value, self.low, self.high))
        return min(max((at - low) / (high - low), 0.0), 1.0)

    def ticks(self) -> list[tuple[float, str]]:
        if self.names:
            return [*self.names]
        if self.log:
            low, high = math.ceil(_log(self.low) - 1e-9), math.floor(_log(self.high) + 1e-9)
            every = max(1, -(-(high - low) // _TICKS))
            return [(10.0**k, words.power(k)) for k in range(high, low - 1, -every)]
        step = _step(self.high - self.low)
        first = math.ceil(self.low / step - 1e-9)
        many = math.floor((self.high - first * step) / step + 1e-9)
        return [((first + i) * step, f"{(first + i) * step:.6g}") for i in range(many + 1)]


@dataclass(frozen=True)
class Curve:
    """Points joined by a line; `steps`: each holds until the next."""

    points: tuple[Point, ...]
    look: str = "curve"  # a class of the style sheet
    steps: bool = False
    closed: bool = False  # an area, filled


@dataclass(frozen=True)
class Mark:
    """A dot with words beside it."""

    at: Point
    text: str = ""


@dataclass(frozen=True)
class Rule:
    """A line across at one value, with words."""

    value: float
    text: str = ""
    upright: bool = False


@dataclass(frozen=True)
class Chart:
    """A picture with two axes."""

    name: str  # of its title and description in the page
    title: str
    about: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()
    rules: tuple[Rule, ...] = ()

    def _at(self, point: Point) -> Point:
        x = _LEFT + self.x.share(point[0]) * (_WIDE - _LEFT - _RIGHT)
        return x, _HIGH - _BOTTOM - self.y.share(point[1]) * (_HIGH - _TOP - _BOTTOM)

    def svg(self) -> Markup:
        """The picture."""
        parts = [
            *self._grid(), *(self._curve(each) for each in self.curves), *(self._rule(each) for each in self.rules),
            *(self._mark(each) for each in self.marks),
        ]  # fmt: skip
        return Markup(
            f'<svg class="chart" viewBox="0 0 {_WIDE} {_HIGH}" role="img" aria-labelledby="{escape(self.name)}-title '
            f'{escape(self.name)}-about"><title id="{escape(self.name)}-title">{escape(self.title)}</title>'
            f'<desc id="{escape(self.name)}-about">{escape(self.about)}</desc>{"".join(parts)}</svg>'
        )

    def _grid(self) -> list[str]:
        left, right, floor, top = _LEFT, _WIDE - _RIGHT, _HIGH - _BOTTOM, _TOP
        found = []
        for value, text in self.y.ticks():
            y = self._at((self.x.low, value))[1]
            found.append(f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            found.append(_said(left - 5, y + 3.5, text, "end"))
        for value, text in self.x.ticks():
            x = self._at((value, self.y.low))[0]
            fits = left <= x - _LETTER * len(text) / 2 and x + _LETTER * len(text) / 2 <= _WIDE
            anchor = "middle" if fits else "start" if x < _WIDE / 2 else "end"
            found.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{floor}" y2="{floor + 4}"/>')
            found.append(_said(x, floor + 15, text, anchor))
        found.append(f'<line class="axis" x1="{left}" x2="{right}" y1="{floor}" y2="{floor}"/>')
        found.append(_said(right, _HIGH - 5, self.x.label, "end", "label"))
        found.append(_said(2, top - 12, self.y.label, "start", "label"))
        return found

    def _curve(self, curve: Curve) -> str:
        points = [self._at(point) for point in curve.points]
        if not points:
            return ""
        path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
        for x, y in points[1:]:
            path += f"H{x:.1f}V{y:.1f}" if curve.steps else f"L{x:.1f} {y:.1f}"
        return f'<path class="{curve.look}" d="{path}{"Z" if curve.closed else ""}"/>'

    def _rule(self, rule: Rule) -> str:
        x, y = self._at((rule.value, rule.value))
        floor, right = float(_HIGH - _BOTTOM), float(_WIDE - _RIGHT)
        line: tuple[float, float, float, float]
        place: tuple[float, float, str]
        if rule.upright:
            line, place = (x, x, _TOP, floor), (x + 3, _TOP + 9, "start")
            place = place if x < 0.6 * _WIDE else (x - 3, _TOP + 9, "end")
        else:
            line, place = (_LEFT, right, y, y), (_LEFT + 4, y + 11 if y < floor - 14 else y - 4, "start")
        drawn = f'<line class="rule" x1="{line[0]:.1f}" x2="{line[1]:.1f}" y1="{line[2]:.1f}" y2="{line[3]:.1f}"/>'
        return drawn + (_said(place[0], place[1], rule.text, place[2], "said") if rule.text else "")

    def _mark(self, mark: Mark) -> str:
        x, y = self._at(mark.at)
        over = x + 7 + _LETTER * len(mark.text) > _WIDE  # then as far to the right as it goes: curves fall
        said = _said(_WIDE - 2 if over else x + 7, y - 7, mark.text, "end" if over else "start", "said")
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"/>{said if mark.text else ""}'


def bar(cap: float, committed: float, held: float) -> Markup:
    """What is spent of a cap (solid), held (hatched) and left (empty). The figures stand beside it in words, so it is
    not read aloud."""
    wide = _BAR_WIDE - 1.0
    first = wide * min(committed / cap, 1.0) if cap > 0 else wide
    last = min(first + (wide * held / cap if cap > 0 else 0.0), wide)
    lines = [first + _HATCH * i for i in range(1, 1 + int((last - first) / _HATCH))]
    hatched = "".join(
        f'<line class="held" x1="{max(x - _HATCH, first):.1f}" x2="{x:.1f}" y1="{_BAR_HIGH - 1}" y2="1"/>'
        for x in lines
    )
    edge = f'<line class="held" x1="{last:.1f}" x2="{last:.1f}" y1="1" y2="{_BAR_HIGH - 1}"/>' if last > first else ""
    return Markup(
        f'<svg class="bar" viewBox="0 0 {_BAR_WIDE} {_BAR_HIGH}" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="spent" x="0.5" y="0.5" width="{first:.1f}" height="{_BAR_HIGH - 1}"/>{hatched}{edge}'
        f'<rect class="cap" x="0.5" y="0.5" width="{wide:.1f}" height="{_BAR_HIGH - 1}"/></svg>'
    )


def rows(many: int, most: int = 13) -> list[int]:
    """Which of many points a table shows: evenly, the ends among them."""
    last = many - 1
    return sorted({round(i * last / (most - 1)) for i in range(most)}) if last >= most else [*range(last + 1)]


def _said(x: float, y: float, text: str, anchor: str, look: str = "tick") -> str:
    return f'<text class="{look}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _step(size: float) -> float:
    """A round distance of ticks."""
    rough = size / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in _STEPS if step * power >= rough * (1 - 1e-9))


def _log(value: float) -> float:
    return math.log10(max(value, 1e-320))
