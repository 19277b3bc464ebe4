"""The picture of an audit: what was seen, and what is impossible if the claim is true."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from privloss.audit.claim import Claim, read_claim
from privloss.audit.result import Audit
from privloss.audit.trial_scores import NAMES, SIGNS, Cuts
from privloss.papers.canvas import picture, plain

_WARNING, _CALM, _LINE = "#c44e52", "#4c72b0", "#333333"
_LEAST = 1e-4  # of a false positive rate in logarithms


def draw(
    found: Audit, path: Path, claim: Any, log: bool = False, raw: tuple[list[float], list[float], str] | None = None
) -> None:
    """ROC square: the claim's curve with the region above it shaded, the scores' steps, and the rectangle in which the
    rates lie with the confidence of the audit. A rectangle wholly in the shade refutes the claim."""
    known = read_claim(claim, found.delta)
    with picture(path) as (canvas, axis):
        canvas.set_size_inches(6.4, 6.6)
        x = np.geomspace(_LEAST, 1, 400) if log else np.linspace(0, 1, 801)
        if known is not None:
            _shade(axis, known, x)
        if raw is not None:
            members, others, direction = raw
            sign = sign_of(found, members, others, direction)
            cuts = Cuts.of(sign * np.array(members), sign * np.array(others))
            _steps(axis, cuts)
            _staircase(axis, found, cuts, len(SIGNS[direction]))
        if found.region is not None:
            _rectangle(axis, found, log)
        axis.plot(x, x, ":", color="#888888", linewidth=1)
        axis.set_xlim(_LEAST if log else 0, 1)
        axis.set_ylim(0, 1)
        if log:
            axis.set_xscale("log")
        axis.set_xlabel("false positive rate")
        axis.set_ylabel("true positive rate")
        plain(axis)
        axis.legend(framealpha=0.8, edgecolor="none", fontsize=8, loc="upper left" if log else "lower right")
        caption = f"{found} {found.method[0].upper()}{found.method[1:]}. Assumed: {'; '.join(found.assumptions)}."
        canvas.suptitle(textwrap.fill(caption, 98), fontsize=7.5, x=0.02, ha="left")


def _shade(axis: Any, claim: Claim, x: Any) -> None:
    curve = claim.most_true(x)
    axis.plot(x, curve, color=_LINE, linewidth=1.5, label=f"claim: {textwrap.shorten(claim.text, 60)}")
    axis.fill_between(x, curve, 1.0, color="#bbbbbb", alpha=0.45, linewidth=0, label="impossible under the claim")


def sign_of(found: Audit, members: list[float], others: list[float], direction: str) -> float:
    """What scores were multiplied by; of both directions, the one that is reported."""
    if direction != "both" or found.counts is None:
        return SIGNS[direction][0]
    high = [sum(score >= (found.threshold or 0.0) for score in some) for some in (members, others)]
    return 1.0 if high == [found.counts["tp"], found.counts["fp"]] else -1.0


def _steps(axis: Any, cuts: Cuts) -> None:
    fpr = np.append(cuts.fp[::-1] / cuts.negatives, 1.0)
    tpr = np.append(cuts.tp[::-1] / cuts.positives, 1.0)
    axis.step(np.insert(fpr, 0, 0.0), np.insert(tpr, 0, 0.0), where="post", color=_CALM, linewidth=1.2, label="scores")


def _staircase(axis: Any, found: Audit, cuts: Cuts, directions: int) -> None:
    """Where limits hold at all thresholds at once: the curve cannot lie to the right of and below it."""
    way = next((way for way, name in NAMES.items() if name == found.method), None)
    if way is None:
        return
    low, high = cuts.limits(way, found.alpha / directions)
    order = np.lexsort((low, high))
    least = np.maximum.accumulate(low[order])
    axis.step(high[order], least, where="post", color=_CALM, linewidth=1, linestyle="--", label="least it can be")


def _rectangle(axis: Any, found: Audit, log: bool) -> None:
    from matplotlib.patches import Rectangle

    assert found.region is not None
    low, high = found.region
    colour = _WARNING if found.verdict == "refuted" else _CALM
    left = _LEAST if log else 0.0
    where = f"the rates lie here ({1 - found.alpha:.3g} confidence)"
    axis.add_patch(
        Rectangle(
            (left, low), max(high - left, 0.0), 1 - low, facecolor=colour, alpha=0.35, edgecolor=colour, label=where
        )
    )
    if found.counts is not None:
        seen = found.counts["fp"] / found.counts["negatives"], found.counts["tp"] / found.counts["positives"]
        axis.plot([max(seen[0], left)], [seen[1]], "o", color=colour, markersize=5, clip_on=False, label="counted")
