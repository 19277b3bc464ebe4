"""One training run under every sampler and adjacency: ``python -m bench.samplers`` writes the table in docs/samplers.md
and docs/figures/samplers.png."""

from __future__ import annotations

import time
from pathlib import Path

import privloss as pl

ROOT = Path(__file__).parent.parent
PAGE, PICTURE = ROOT / "docs" / "samplers.md", ROOT / "docs" / "figures" / "samplers.png"
SIZE, BATCH, EPOCHS, NOISE, DELTA = 60_000, 256, 4, 0.97, 1e-6
MOST = 400
NAMES = {
    "poisson": "Poisson",
    "truncated-poisson": f"Poisson, at most {MOST}",
    "fixed-size": "fixed size",
    "with-replacement": "with replacement",
    "allocation": "random allocation",
    "shuffle": "shuffled epochs",
}
ADJACENCIES = ("add-remove", "zero-out", "replace-one")


def measure() -> dict[tuple[str, str], tuple[pl.Bound | str, float]]:
    found: dict[tuple[str, str], tuple[pl.Bound | str, float]] = {}
    for sampling in NAMES:
        for adjacency in ADJACENCIES:
            most = MOST if sampling == "truncated-poisson" else None
            start = time.perf_counter()
            answer: pl.Bound | str
            try:
                run = pl.dp_sgd(
                    dataset_size=SIZE, batch_size=BATCH, epochs=EPOCHS, noise_multiplier=NOISE, sampling=sampling,
                    adjacency=adjacency, max_batch_size=most,
                )  # fmt: skip
                answer = run.epsilon(DELTA)
            except pl.Unsupported:
                answer = "refused"
            found[sampling, adjacency] = answer, time.perf_counter() - start
            print(sampling, adjacency, answer, f"{found[sampling, adjacency][1]:.2f} s", flush=True)
    return found


def cell(answer: pl.Bound | str) -> str:
    if isinstance(answer, str):
        return answer
    return f"{answer.upper:.6f}" if answer.relative_width < 1e-6 else f"{answer.lower:.3f} to {answer.upper:.3f}"


def draw(found: dict[tuple[str, str], tuple[pl.Bound | str, float]]) -> None:
    import matplotlib.pyplot as plt

    canvas, axis = plt.subplots(figsize=(7.6, 4.4), dpi=200)
    colours = dict(zip(ADJACENCIES, ("#4c72b0", "#55a868", "#c44e52"), strict=True))
    for i, name in enumerate(reversed(NAMES)):
        for j, adjacency in enumerate(ADJACENCIES):
            answer, _ = found[name, adjacency]
            y = i + 0.24 * (1 - j)
            if isinstance(answer, str):
                axis.text(0.07, y, f"{adjacency}: refused", fontsize=6.5, va="center", color="#888888")
                continue
            low = max(answer.lower, 0.06)
            axis.plot([low, answer.upper], [y, y], color=colours[adjacency], linewidth=5, alpha=0.45)
            axis.plot(
                [answer.upper], [y], "o", color=colours[adjacency], markersize=5, label=adjacency if i == 5 else None
            )
    axis.set_xscale("log")
    axis.set_xlim(0.06, 60)
    axis.set_xticks([0.1, 0.3, 1, 3, 10, 30], ["0.1", "0.3", "1", "3", "10", "30"])
    axis.set_yticks(range(len(NAMES)), [NAMES[n] for n in reversed(NAMES)])
    axis.axvline(1, color="#888888", linewidth=0.8, linestyle=":")
    axis.set_xlabel("epsilon (dot: proven upper end; bar: down to the proven lower end)", fontsize=9)
    axis.set_title(f"One run: {SIZE:,} records, batch {BATCH}, {EPOCHS} epochs, noise {NOISE}", fontsize=10)
    axis.legend(frameon=False, fontsize=8, loc="upper right")
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    canvas.tight_layout()
    canvas.savefig(PICTURE)


def main() -> None:
    found = measure()
    lines = ["| sampler | " + " | ".join(ADJACENCIES) + " |", "|---|" + "---|" * len(ADJACENCIES)]
    lines += [f"| {NAMES[n]} | " + " | ".join(cell(found[n, a][0]) for a in ADJACENCIES) + " |" for n in NAMES]
    text = PAGE.read_text()
    before, rest = text.split("<!-- table -->\n", 1)
    after = rest.split("<!-- end of table -->", 1)[1]
    PAGE.write_text(before + "<!-- table -->\n" + "\n".join(lines) + "\n<!-- end of table -->" + after)
    draw(found)


if __name__ == "__main__":
    main()
