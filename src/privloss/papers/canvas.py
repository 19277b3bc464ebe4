"""Where pictures are drawn; matplotlib is loaded only here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privloss.errors import MissingExtra

PICTURES = (".png", ".svg", ".pdf")


@contextmanager
def picture(path: Path) -> Iterator[tuple[Any, Any]]:
    """A canvas and its axis, saved at the end."""
    plt = pyplot()
    canvas, axis = plt.subplots(figsize=(7.2, 4.6), dpi=200)
    try:
        yield canvas, axis
        canvas.tight_layout()
        canvas.savefig(path)
    finally:
        plt.close(canvas)


def pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("pictures need matplotlib: pip install 'privloss[plots]' (or use numbers).") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def plain(axis: Any) -> None:
    """No frame above and to the right, a light grid."""
    axis.grid(alpha=0.25)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
