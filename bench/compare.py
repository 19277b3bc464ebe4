"""Side by side with dp-accounting and prv-accountant, in one process: ``python -m bench.compare``.

Every reference case runs on all three; time is the median of a few repetitions on slightly different parameters (so
that no cache can answer), accuracy is measured at the reference parameters. Writes bench/results.md, results.png and
the table in the README.
Peers that need more memory than MEMORY_GB are reported as such: they run under that limit.
"""

from __future__ import annotations

import json
import math
import random
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES = HERE.parent / "tests" / "data" / "reference.json"
SPEED = [f"A{i}" for i in (*range(1, 14), 16)]
MEMORY_GB = 12
SLOW = 4.0  # a peer slower than this is timed once


@dataclass
class Measured:
    """One tool on one case."""

    seconds: float | None = None
    lower: float | None = None
    upper: float | None = None  # what the tool says is an upper bound
    problem: str = ""


Ask = Callable[[dict[str, Any], float], tuple[float, float]]


def ours(step: dict[str, Any], delta: float) -> tuple[float, float]:
    import privloss as pl

    bound = pl.Plan.from_dict({"steps": [step]}).epsilon(delta)
    return bound.lower, bound.upper


def dp_accounting(step: dict[str, Any], delta: float) -> tuple[float, float]:
    import dp_accounting as dp

    found = dp.pld.privacy_loss_distribution
    kind, size = step["mechanism"], step.get("sensitivity", 1)
    if kind == "discrete-gaussian":
        pld = found.from_discrete_gaussian_mechanism(step["sigma"], sensitivity=size)
        return 0.0, pld.self_compose(step["count"]).get_epsilon_for_delta(delta)
    if kind == "discrete-laplace":
        pld = found.from_discrete_laplace_mechanism(1 / step["scale"], sensitivity=size)
        return 0.0, pld.self_compose(step["count"]).get_epsilon_for_delta(delta)
    if kind == "laplace" and "sampling" in step:
        pld = found.from_laplace_mechanism(step["scale"], sampling_prob=step["sampling"]["rate"])
        return 0.0, pld.self_compose(step["count"]).get_epsilon_for_delta(delta)
    if kind == "gaussian":
        event: Any = dp.GaussianDpEvent(step["noise_multiplier"])
    elif kind == "laplace":
        event = dp.LaplaceDpEvent(step["scale"])
    else:
        pld = dp.pld.privacy_loss_distribution.from_privacy_parameters(
            dp.pld.common.DifferentialPrivacyParameters(step["epsilon"], 0)
        )
        return 0.0, pld.self_compose(step["count"]).get_epsilon_for_delta(delta)
    if "sampling" in step:
        event = dp.PoissonSampledDpEvent(step["sampling"]["rate"], event)
    accountant = dp.pld.PLDAccountant().compose(dp.SelfComposedDpEvent(event, step["count"]))
    return 0.0, accountant.get_epsilon(delta)


def prv_accountant(step: dict[str, Any], delta: float) -> tuple[float, float]:
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import (
        LaplaceMechanism,
        PoissonSubsampledGaussianMechanism,
        PureDPMechanism,
    )

    if step["mechanism"] not in ("gaussian", "laplace", "pure-dp") or (
        step["mechanism"] == "laplace" and "sampling" in step
    ):
        raise NotImplementedError("no such mechanism")
    if step["mechanism"] == "gaussian":
        rate = step["sampling"]["rate"] if "sampling" in step else 1.0
        prv: Any = PoissonSubsampledGaussianMechanism(
            noise_multiplier=step["noise_multiplier"], sampling_probability=rate
        )
    elif step["mechanism"] == "laplace":
        prv = LaplaceMechanism(mu=1 / step["scale"])
    else:
        prv = PureDPMechanism(step["epsilon"])
    count = step["count"]
    accountant = PRVAccountant(prvs=[prv], max_self_compositions=[count], eps_error=0.1, delta_error=delta / 1000)
    low, _, up = accountant.compute_epsilon(delta=delta, num_self_compositions=[count])
    return low, up


TOOLS: dict[str, Ask] = {"privloss": ours, "dp-accounting": dp_accounting, "prv-accountant": prv_accountant}


def varied(step: dict[str, Any], repetition: int) -> dict[str, Any]:
    """The same step with its noise changed in the sixth digit."""
    key = next(k for k in ("noise_multiplier", "sigma", "scale", "epsilon") if k in step)
    return {**step, key: step[key] * (1 + 1e-6 * (repetition + 1))}


def measure(ask: Ask, step: dict[str, Any], delta: float, repetitions: int) -> Measured:
    found = Measured()
    try:
        start = time.perf_counter()
        low, up = ask(step, delta)
        first = time.perf_counter() - start
        found.lower, found.upper = float(low), float(up)
        times = [first] if first > SLOW else []
        for i in range(0 if times else repetitions):
            start = time.perf_counter()
            ask(varied(step, i), delta)
            times.append(time.perf_counter() - start)
        found.seconds = statistics.median(times)
    except MemoryError:
        found.problem = f"needs over {MEMORY_GB} GB"
    except Exception as problem:
        found.problem = f"{type(problem).__name__}: {problem}".splitlines()[0][:60]
    return found


def verdict(case: dict[str, Any], found: Measured) -> str:
    """The relative error of the upper end, marked where it lies below the truth."""
    if found.problem or found.upper is None:
        return found.problem or "no answer"
    truth, slack = case["epsilon"], 10.0 ** (1 - case["digits"])
    if math.isinf(found.upper):
        return "inf"
    error = found.upper / truth - 1
    return f"**{error:+.1e} unsound**" if error < -slack else f"{max(error, 0.0):.1e}"


def run() -> dict[str, dict[str, Measured]]:
    from rich.progress import Progress

    cases = [c for c in json.loads(CASES.read_text())["cases"] if len(c["plan"]["steps"]) == 1]
    results: dict[str, dict[str, Measured]] = {}
    with Progress() as progress:
        task = progress.add_task("cases", total=len(cases) * len(TOOLS))
        for case in cases:
            step = case["plan"]["steps"][0]
            results[case["name"]] = {}
            for name, ask in TOOLS.items():
                results[case["name"]][name] = measure(ask, step, case["delta"], 9 if name == "privloss" else 3)
                progress.advance(task)
    return results


def ratio(found: dict[str, Measured], peer: str) -> float | None:
    mine, theirs = found["privloss"].seconds, found[peer].seconds
    return theirs / mine if mine and theirs else None


def scaling() -> list[tuple[int, float]]:
    """Time for noisy SGD at growing numbers of steps, the total noise held fixed."""
    import privloss as pl

    rows = []
    for exponent in (3, 5, 7, 9, 12):
        steps, times = 10**exponent, []
        for i in range(9):
            plan = pl.Gaussian(1.1 * (1 + 1e-6 * i)).poisson(0.3 / math.sqrt(steps)) * steps
            start = time.perf_counter()
            plan.epsilon(1e-6)
            times.append(time.perf_counter() - start)
        rows.append((steps, statistics.median(times)))
    return rows


def markdown(
    results: dict[str, dict[str, Measured]],
    steps: list[tuple[int, float]],
    thousand: tuple[float, float],
    boxes: dict[tuple[int, int | None], tuple[float, float, float, float]],
) -> str:
    cases = {c["name"]: c for c in json.loads(CASES.read_text())["cases"]}
    lines = [
        "| case | privloss, ms | dp-accounting, time ratio | prv-accountant, time ratio | privloss, relative width "
        "| dp-accounting, error | prv-accountant, error |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in results.items():
        mine = found["privloss"]
        width = (mine.upper - mine.lower) / mine.upper if mine.upper and mine.lower is not None else math.nan
        row = [name, f"{1e3 * (mine.seconds or math.nan):.1f}"]
        row += [
            f"{r:.0f}x" if (r := ratio(found, peer)) else found[peer].problem
            for peer in ("dp-accounting", "prv-accountant")
        ]
        row += [f"{width:.0e}", *(verdict(cases[name], found[p]) for p in ("dp-accounting", "prv-accountant"))]
        lines.append("| " + " | ".join(row) + " |")
    for peer in ("dp-accounting", "prv-accountant"):
        ratios = [r for n in SPEED if (r := ratio(results[n], peer))]
        lines.append(
            f"\nMedian time ratio to {peer} on {len(ratios)} of A1-A13, A16: **{statistics.median(ratios):.1f}x**."
        )
    unsound = {t: sum("unsound" in verdict(cases[n], f[t]) for n, f in results.items()) for t in TOOLS}
    lines.append(
        "\nUpper ends below the truth: " + ", ".join(f"{tool} {count}" for tool, count in unsound.items()) + "."
    )
    lines.append("\nTime by number of steps: " + ", ".join(f"{n:.0e}: {1e3 * t:.1f} ms" for n, t in steps) + ".")
    lines.append(
        f"\n1000 different steps (rate, sigma) composed once each: {thousand[0]:.2f} s, "
        f"relative width {thousand[1]:.0e}."
    )
    lines += [
        "",
        "| unequal boxes | privloss, s | relative width | dp-accounting, time ratio | its error |",
        "|---|---|---|---|---|",
    ]
    for (count, digits), (mine, width, theirs, error) in boxes.items():
        kind = f"{count}, {f'{digits} decimals' if digits else 'any doubles'}"
        lines.append(f"| {kind} | {mine:.2f} | {width:.0e} | {theirs / mine:.0f}x | {error:+.0e} |")
    return "\n".join(lines) + "\n"


def thousand_different() -> tuple[float, float]:
    import privloss as pl

    case = next(c for c in json.loads(CASES.read_text())["cases"] if c["name"] == "G1")
    plan = pl.Plan.from_dict(case["plan"])
    start = time.perf_counter()
    bound = plan.epsilon(case["delta"])
    return time.perf_counter() - start, bound.relative_width


def different_boxes(count: int, digits: int | None) -> tuple[float, float, float, float]:
    """Unequal pure-DP boxes: our seconds, relative width, dp-accounting's seconds at its default grid, its excess."""
    import dp_accounting as dp

    import privloss as pl

    rng = random.Random(count)
    drawn = [rng.uniform(0.001, 0.1) for _ in range(count)]
    eps = [round(e, digits) for e in drawn] if digits else drawn
    times = []
    for i in range(3):
        moved = [e + i * 1e-4 for e in eps] if digits else [e * (1 + 1e-6 * i) for e in eps]
        plan = pl.composition.boxes([round(e, digits) for e in moved] if digits else moved)
        start = time.perf_counter()
        bound = plan.epsilon(1e-6)
        times.append(time.perf_counter() - start)
        if i == 0:
            answer = bound
    start = time.perf_counter()
    found = dp.pld.privacy_loss_distribution
    total = found.identity()
    for e in eps:
        parameters = dp.pld.common.DifferentialPrivacyParameters(e, 0)
        total = total.compose(found.from_privacy_parameters(parameters))
    theirs = total.get_epsilon_for_delta(1e-6)
    spent = time.perf_counter() - start
    return statistics.median(times), answer.relative_width, spent, theirs / answer.upper - 1


def picture(results: dict[str, dict[str, Measured]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(results)
    figure, axis = plt.subplots(figsize=(10, 4.2), dpi=150)
    for tool, colour, marker in (
        ("dp-accounting", "#c44e52", "s"),
        ("prv-accountant", "#dd8452", "^"),
        ("privloss", "#4c72b0", "o"),
    ):
        points = [(i, 1e3 * s) for i, n in enumerate(names) if (s := results[n][tool].seconds)]
        axis.semilogy([p[0] for p in points], [p[1] for p in points], marker, color=colour, label=tool, markersize=6)
    axis.set_xticks(range(len(names)), names, rotation=60)
    axis.set_ylabel("milliseconds per answer")
    axis.set_title("Time for epsilon at the reference cases, one run, one machine")
    axis.grid(axis="y", alpha=0.3)
    axis.legend(frameon=False, ncols=3, loc="upper left")
    axis.set_ylim(0.1, 2e5)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path)


def into_readme(text: str) -> None:
    """Put the table between its two marks."""
    path = HERE.parent / "README.md"
    before, rest = path.read_text().split("<!-- results", 1)
    mark, after = rest.split("-->\n", 1)
    _, after = after.split("<!-- end of results -->", 1)
    path.write_text(f"{before}<!-- results{mark}-->\n{text}<!-- end of results -->{after}")


def main() -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_GB * 2**30, MEMORY_GB * 2**30))
    results = run()
    boxes = {(n, d): different_boxes(n, d) for n in (50, 500) for d in (4, None)}
    text = markdown(results, scaling(), thousand_different(), boxes)
    (HERE / "results.md").write_text(text)
    into_readme(text)
    picture(results, HERE / "results.png")
    Console(width=200).print(Markdown(text))


if __name__ == "__main__":
    main()
