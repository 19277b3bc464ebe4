"""What was found, and the line or the lines it was read from, which may be read elsewhere too."""

from __future__ import annotations

from dataclasses import dataclass

from privloss.numerics.contour.line import Line
from privloss.numerics.contour.reading import SplitReading


@dataclass(frozen=True)
class Solved:
    """An interval for eps, and the line or the lines it was read from (none if none was needed)."""

    lower: float
    upper: float
    line: Line | None
    classes: SplitReading | None = None
    apart: bool = False  # outcome by outcome of some part

    @property
    def readable(self) -> Line | SplitReading | None:
        """What may be read at other eps."""
        return self.classes or readable_line(self.line)


def readable_line(line: Line | None) -> Line | None:
    """A line, if it may be read at other eps: not on a lattice, not blurred."""
    return None if line is None or line.lattice is not None or line.mu > 0 else line


@dataclass(frozen=True)
class DeltaRead:
    """log of lower and upper bounds on delta(eps), without any mass at infinity, and how they were read."""

    logs: tuple[float, float]
    line: Line | None = None
    classes: SplitReading | None = None
    apart: bool = False

    @property
    def readable(self) -> Line | SplitReading | None:
        """What may be read at other eps."""
        return self.classes or readable_line(self.line)

    @property
    def mu(self) -> float:
        """The blur that was used."""
        return 0.0 if self.line is None else self.line.mu
