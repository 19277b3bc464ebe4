"""Certified reference cases: width, time to find a certificate and to check it (median of three runs each).

Run with ``python -m bench.certificates``.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path

import privloss as pl

RUNS = 3


def main() -> None:
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
