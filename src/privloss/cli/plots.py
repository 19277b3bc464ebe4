"""Figures as pictures and tables; matplotlib is loaded only here."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privloss.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from privloss.planning.sweep import Sweep
    from privloss.theorems.figures import Figure

FORMATS = (".png", ".svg", ".pdf", ".csv")
_COLOURS = ("#c44e52", "#dd8452", "#937860", "#8172b3", "#4c72b0", "#55a868", "#333333")
_DASHES = ("-", "-", "--", "-", "-", "-", ":")


def output_path(text: str) -> Path:
    """Checked before anything is computed."""
    path = Path(text)
    if path.suffix.lower() not in FORMATS:
        raise InvalidInput(f"--out = {text!r}: must end in one of {', '.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise InvalidInput(f"--out = {text!r}: the directory {str(path.parent)!r} does not exist.")
    if path.suffix.lower() != ".csv":
        _pyplot()
    return path


def save(figure: Figure, path: Path) -> None:
    """A picture, or with .csv the numbers."""
    if path.suffix.lower() == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([figure.x_label, *figure.curves])
            writer.writerows([["" if math.isnan(v) else repr(v) for v in row] for row in figure.rows()])
        return
    plt = _pyplot()
    canvas, axis = plt.subplots(figsize=(7.2, 4.6), dpi=200)
    drawn = {n: c for n, c in figure.curves.items() if not n.startswith("measured,") and n != "false positive rate"}
    for (name, values), colour, dash in zip(drawn.items(), _COLOURS, _DASHES, strict=False):
        axis.plot(figure.x, values, dash, color=colour, label=name, linewidth=1.8, markersize=4)
    if "measured, lower" in figure.curves:
        axis.fill_between(
            figure.x, figure.curves["measured, lower"], figure.curves["measured, upper"], color=_COLOURS[0], alpha=0.25
        )
        axis.plot(figure.x, figure.curves["false positive rate"], ":", color="#888888", label="false positive rate")
        axis.set_xscale("symlog", linthresh=0.01)
    if figure.log_y:
        axis.set_yscale("log")
    axis.set_title(figure.title, fontsize=11)
    axis.set_xlabel(figure.x_label)
    axis.set_ylabel(figure.y_label)
    axis.grid(alpha=0.25)
    axis.legend(frameon=False, fontsize=9)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    canvas.tight_layout()
    canvas.savefig(path)
    plt.close(canvas)


def save_sweep(sweep: Sweep, path: Path) -> None:
    """A heat map of the upper ends, or with .csv the numbers."""
    if path.suffix.lower() == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*sweep.names, "epsilon lower", "epsilon upper"])
            for point in sweep.points():
                answer = point["epsilon"]
                writer.writerow([*(repr(point[n]) for n in sweep.names), repr(answer.lower), repr(answer.upper)])
        return
    plt = _pyplot()
    from matplotlib.colors import LogNorm

    table = [[cell.upper for cell in row] for row in sweep.table()]
    seen = [v for row in table for v in row if 0 < v < math.inf]
    canvas, axis = plt.subplots(figsize=(7.2, 4.6), dpi=200)
    norm = LogNorm(min(seen), max(seen)) if seen and min(seen) < max(seen) else None
    shown = [[min(max(v, min(seen, default=1e-9)), max(seen, default=1.0)) for v in row] for row in table]
    picture = axis.imshow(shown, norm=norm, cmap="viridis_r", origin="lower", aspect="auto")
    if len(seen) <= 150:
        for i, row in enumerate(table):
            for j, value in enumerate(row):
                dark = norm is not None and value > 0 and norm(min(value, max(seen))) > 0.55
                text = f"{value:.3g}" if math.isfinite(value) else "inf"
                axis.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    for name, values, place, label in (
        (sweep.names[1], sweep.values[1], axis.set_xticks, axis.set_xlabel),
        (sweep.names[0], sweep.values[0], axis.set_yticks, axis.set_ylabel),
    ):
        place(range(len(values)), [f"{v:.3g}" for v in values], fontsize=8)
        label(name.replace("_", " "))
    axis.set_title(f"epsilon at delta = {sweep.delta:g}", fontsize=11)
    canvas.colorbar(picture, ax=axis, label="epsilon")
    canvas.tight_layout()
    canvas.savefig(path)
    plt.close(canvas)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("pictures need matplotlib: pip install 'privloss[plots]' (or use --out FILE.csv).") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
