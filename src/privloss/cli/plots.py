"""Figures as pictures and tables."""

from __future__ import annotations

import csv
import math
from decimal import ROUND_CEILING
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privloss.errors import InvalidInput
from privloss.numerics.bound import shortened
from privloss.papers.canvas import PICTURES, picture, plain, pyplot

if TYPE_CHECKING:
    from privloss.planning.sweep import Sweep
    from privloss.theorems.figures import Figure

FORMATS = (*PICTURES, ".csv")
_COLOURS = ("#c44e52", "#dd8452", "#937860", "#8172b3", "#4c72b0", "#55a868", "#333333")
_DASHES = ("-", "-", "--", "-", "-", "-", ":")
_MOST_NUMBERS = 150  # printed into a heat map


def output_path(text: str, formats: tuple[str, ...] = FORMATS) -> Path:
    """Checked before anything is computed."""
    path = Path(text)
    if path.suffix.lower() not in formats:
        raise InvalidInput(f"--out = {text!r}: must end in one of {', '.join(formats)}.")
    if not path.parent.is_dir():
        raise InvalidInput(f"--out = {text!r}: the directory {str(path.parent)!r} does not exist.")
    if path.suffix.lower() in PICTURES:
        pyplot()
    return path


def save(figure: Figure, path: Path) -> None:
    """A picture, or with .csv the numbers."""
    if path.suffix.lower() == ".csv":
        rows = [["" if math.isnan(v) else repr(v) for v in row] for row in figure.rows()]
        _save_csv(path, [figure.x_label, *figure.curves], rows)
        return
    with picture(path) as (_, axis):
        _draw_curves(axis, figure)
        if figure.log_y:
            axis.set_yscale("log")
        if figure.log_x:
            axis.set_xscale("log")
        axis.set_title(figure.title, fontsize=11)
        axis.set_xlabel(figure.x_label)
        axis.set_ylabel(figure.y_label)
        axis.legend(frameon=False, fontsize=9)
        plain(axis)


def _draw_curves(axis: Any, figure: Figure) -> None:
    drawn = {n: c for n, c in figure.curves.items() if not n.startswith("measured,") and n != "false positive rate"}
    for (name, values), colour, dash in zip(drawn.items(), _COLOURS, _DASHES, strict=False):
        axis.plot(figure.x, values, dash, color=colour, label=name, linewidth=1.8, markersize=4)
    if "measured, lower" in figure.curves:
        axis.fill_between(
            figure.x, figure.curves["measured, lower"], figure.curves["measured, upper"], color=_COLOURS[0], alpha=0.25
        )
        axis.plot(figure.x, figure.curves["false positive rate"], ":", color="#888888", label="false positive rate")
        axis.set_xscale("symlog", linthresh=0.01)


def save_sweep(sweep: Sweep, path: Path, ran: str) -> None:
    """A heat map of the upper ends, or of the values found; `ran` says what is the same in all cells."""
    with picture(path) as (canvas, axis):
        numbers, width = [outcome.number for outcome in sweep.outcomes], len(sweep.values[1])
        table = [numbers[i : i + width] for i in range(0, len(numbers), width)]
        shown = (sweep.find or f"{sweep.answer}, upper end").replace("_", " ")
        canvas.colorbar(_draw_cells(axis, table), ax=axis, label=shown)
        for name, values, place, label in (
            (sweep.names[1], sweep.values[1], axis.set_xticks, axis.set_xlabel),
            (sweep.names[0], sweep.values[0], axis.set_yticks, axis.set_ylabel),
        ):
            place(range(len(values)), [f"{v:.3g}" for v in values], fontsize=8)
            label(name.replace("_", " "))
        axis.set_title(f"{sweep.describe()}\n{ran}", fontsize=11)


def _draw_cells(axis: Any, table: list[list[float]]) -> Any:
    """Coloured cells on a logarithmic scale; their numbers too, if there are not too many."""
    from matplotlib.colors import LogNorm

    seen = [v for row in table for v in row if 0 < v < math.inf]
    low, high = min(seen, default=1e-9), max(seen, default=1.0)
    norm = LogNorm(low, high) if seen and low < high else None
    shown = [[min(max(v, low), high) for v in row] for row in table]
    picture = axis.imshow(shown, norm=norm, cmap="viridis_r", origin="lower", aspect="auto")
    if len(seen) > _MOST_NUMBERS:
        return picture
    for i, row in enumerate(table):
        for j, value in enumerate(row):
            dark = norm is not None and value > 0 and norm(min(value, high)) > 0.55
            text = "refused" if math.isnan(value) else shortened(value, 3, ROUND_CEILING)  # upper ends, least noise
            axis.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    return picture


def _save_csv(path: Path, header: list[str], rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
