"""Audits: how long they take, how often they err: ``python -m bench.audit [times] [coverage] [power] [peer]``.

*times*: CPU seconds of single calls. *coverage*: simulated audits of mechanisms whose curve is known, by every method
(`audit_coverage.py`). *power*: what they show, as medians (`audit_power.py`). *peer*: the same scores given to JAX
Privacy's auditor and to ours (`audit_peer.py`). *coverage* and *peer* write their tables to docs/auditing.md. All but
*times* fail if an audit errs more often than it may, or shows less than it should.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable
from typing import Any

import privloss as pl
from bench import audit_coverage, audit_peer, audit_power
from privloss.audit import bands


def seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun


def times() -> None:
    plan = pl.Gaussian(1.1).poisson(0.01) * 10_000
    trials: dict[str, Any] = {"delta": 1e-5, "trials": "independent"}
    run: dict[str, Any] = {
        "canaries": 10**5, "guesses": 10**5, "delta": 1e-7, "inclusion": "coins", "guesses_fixed": True,
    }  # fmt: skip
    small = {**run, "canaries": 1000, "guesses": 1000, "delta": 1e-5}
    counts = functools.partial(pl.audit.counts, positives=400, fp=20, negatives=400, **trials)
    plan.epsilon(1e-5)  # not what is timed
    for name, call in (
        ("counts, 400 a side", lambda: counts(tp=300)),
        ("counts, 400 a side, a plan claimed", lambda: counts(tp=300, claim=plan)),
        ("counts, 2 000 a side", lambda: pl.audit.counts(tp=1500, positives=2000, fp=100, negatives=2000, **trials)),
        ("band, 1 000 scores", lambda: bands.local_level(1000, 0.025)),
        ("one run, 10^5 canaries", lambda: pl.audit.one_run(correct=60_000, **run)),
        (
            "one run, 10^5 canaries, (epsilon, delta) claimed",
            lambda: pl.audit.one_run(correct=60_000, claim=2.0, **run),
        ),
        ("one run, 10^5 canaries, a plan claimed", lambda: pl.audit.one_run(correct=60_000, claim=plan, **run)),
        ("one run, 10^3 canaries, a plan claimed", lambda: pl.audit.one_run(correct=800, claim=plan, **small)),
    ):
        print(f"{name:52} {seconds(call):8.3f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["times", "coverage"], metavar="times|coverage|power|peer")
    parser.add_argument("--audits", type=int, default=None, help="2 000; of the peer 1 000, for medians 25")
    parser.add_argument("--only", default="", help="coverage of methods with this in their name; other cells stay")
    parser.add_argument("--world", default="", help="and of mechanisms with this in their name")
    given = parser.parse_args()
    well = True
    if "times" in given.what:
        times()
    if "coverage" in given.what:
        well &= audit_coverage.coverage(given.audits or 2000, given.only, given.world)
    if "power" in given.what:
        well &= audit_power.power(given.audits or 25)
    if "peer" in given.what:
        well &= audit_peer.peer(given.audits or 1000)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
