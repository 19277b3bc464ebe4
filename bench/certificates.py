"""Certified reference cases: width, time to find a certificate and to check it (median of three runs each).

Run with ``python -m bench.certificates``; with ``--grid 200`` that many ordinary training settings (`bench.ordinary`)
instead, once each: the worst and the median of width and times, and how often the upper end is a moments bound only.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from pathlib import Path

import privloss as pl
from bench.ordinary import draw

RUNS = 3


def grid(settings: int, seed: int) -> None:
    """Ordinary settings."""
    rng, radii, found, checked, moments = random.Random(seed), [], [], [], 0
    while len(radii) < settings:
        setting = draw(rng)
        if not 1e-3 <= setting.answer().upper <= 50:
            continue
        start = time.process_time()
        certificate = pl.certify(pl.Gaussian(setting.sigma).poisson(setting.rate) * setting.steps, delta=setting.delta)
        found.append(time.process_time() - start)
        start = time.process_time()
        assert pl.verify(certificate).holds
        checked.append(time.process_time() - start)
        ends = certificate.data["claim"]["epsilon"]
        low, high = float(ends["lower"]), float(ends["upper"])
        radii.append((high - low) / 2 / high)
        moments += "split" not in certificate.bound.method and "line" not in certificate.bound.method
        if radii[-1] > 1e-9 or found[-1] > 5:
            print(f"  {setting}: radius {radii[-1]:.1e}, {found[-1]:.1f} s, {certificate.bound.method}")
    widths = f"radius at most {max(radii):.1e}, median {statistics.median(radii):.1e}"
    print(f"{settings} ordinary settings, seed {seed}: {widths}")
    print(f"CPU s: found in {statistics.median(found):.2f} (median), {max(found):.1f} (most)")
    print(f"       checked in {statistics.median(checked):.2f} (median), {max(checked):.1f} (most)")
    print(f"moments bound only: {moments}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grid", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.grid:
        grid(arguments.grid, arguments.seed)
    else:
        reference()


def reference() -> None:
    cases = json.loads(Path("tests/data/reference.json").read_text())["cases"]
    print("| case | epsilon, certified upper end | relative radius | find (s) | check (s) | method |")
    print("|---|---|---|---|---|---|")
    for case in sorted(cases, key=lambda c: (c["name"][0], int(c["name"][1:]))):
        if case["name"] == "G1":  # a thousand kinds of step take a minute
            continue
        plan = pl.Plan.from_dict(case["plan"])
        found, checked = [], []
        for _ in range(RUNS):
            start = time.perf_counter()
            certificate = pl.certify(plan, delta=case["delta"])
            found.append(time.perf_counter() - start)
            start = time.perf_counter()
            assert pl.verify(certificate).holds
            checked.append(time.perf_counter() - start)
        ends = certificate.data["claim"]["epsilon"]
        low, high = float(ends["lower"]), float(ends["upper"])
        method = certificate.bound.method.removeprefix("certified ").strip("()")
        times = f"{statistics.median(found):.2f} | {statistics.median(checked):.2f}"
        print(f"| {case['name']} | {ends['upper'][:18]} | {(high - low) / 2 / high:.0e} | {times} | {method} |")


if __name__ == "__main__":
    main()
