"""Periods of a budget and blocks of data: labels of years, quarters, months, weeks and days (UTC, ISO weeks).

Labels of one kind sort like the time they stand for.

>>> label("quarter", 1_763_251_200.0), label("week", 1_763_251_200.0)
('2025-Q4', '2025-W46')
>>> blocks("day", "2026-02-27..2026-03-01")
('2026-02-27', '2026-02-28', '2026-03-01')
>>> blocks("week", ["2026-W53", "2026-W52"])
('2026-W52', '2026-W53')
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from privloss.errors import InvalidInput

EVERY = ("year", "quarter", "month", "week", "day")
MOST_BLOCKS = 4000  # that one analysis may read


def label(every: str, at: float) -> str:
    """The period a moment (seconds since the epoch) lies in."""
    return _label(every, datetime.fromtimestamp(at, UTC).date())


def around(every: str, at: float) -> tuple[float, float]:
    """When the period a moment lies in begins, and when the next one does."""
    first = _first_day(every, label(every, at))
    begins, ends = (datetime(d.year, d.month, d.day, tzinfo=UTC) for d in (first, first + _length(every, first)))
    return begins.timestamp(), ends.timestamp()


def _label(every: str, day: date) -> str:
    if every == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04d}-W{week:02d}"
    if every == "quarter":
        return f"{day.year:04d}-Q{(day.month + 2) // 3}"
    return day.isoformat()[: {"year": 4, "month": 7, "day": 10}[every]]


def _first_day(every: str, text: str) -> date:
    if every == "week":
        return datetime.strptime(f"{text}-1", "%G-W%V-%u").replace(tzinfo=UTC).date()
    if every == "quarter":
        year, quarter = text.split("-Q")
        return date(int(year), 3 * int(quarter) - 2, 1)
    return date.fromisoformat(text + {"year": "-01-01", "month": "-01", "day": ""}[every])


def _read(every: str, text: Any) -> date:
    try:
        day = _first_day(every, text)
        if _label(every, day) == text:
            return day
    except (ValueError, TypeError, AttributeError):
        pass
    example = _label(every, date(2026, 11, 16))
    raise InvalidInput(f"blocks = {text!r}: a {every} is written like {example}, a range {example}..{example}.")


def blocks(every: str, asked: str | Sequence[str]) -> tuple[str, ...]:
    """The blocks of a range `first..last`, of one label, or of several of these, in order, each once."""
    found: set[str] = set()
    walked = 0  # also over blocks that were named before: a long list of long ranges is refused, not walked
    for part in [asked] if isinstance(asked, str) else list(asked):
        first, dots, last = part.partition("..") if isinstance(part, str) else (part, "", "")
        day, end = _read(every, first), _read(every, last if dots else first)
        if end < day:
            raise InvalidInput(f"blocks = {part!r}: the range ends before it begins.")
        for each in _walk(every, day, end):
            found.add(each)
            walked += 1
            if walked > MOST_BLOCKS:
                raise InvalidInput(f"blocks = {part!r}: an analysis may read at most {MOST_BLOCKS} blocks.")
    if not found:
        raise InvalidInput(f"blocks = {asked!r}: must name at least one {every}.")
    return tuple(sorted(found))


def _walk(every: str, day: date, end: date) -> Iterator[str]:
    """Never beyond the end: the year 9999 has no next."""
    yield _label(every, day)
    while day < end:
        day += _length(every, day)
        yield _label(every, day)


def _length(every: str, first: date) -> timedelta:
    """From the first day of a period to the first of the next."""
    if every in ("day", "week"):
        return timedelta(days=1 if every == "day" else 7)
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    month = first.month - 1 + months
    return date(first.year + month // 12, month % 12 + 1, 1) - first
