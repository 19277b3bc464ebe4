"""A service with a year of made-up history: ``make demo``, or ``python examples/demo.py [--port P] [--db PLACE]``.

A hospital with three datasets and three analysts: budgets by the quarter, quotas, blocks of new data every month, an
incident that froze a dataset, an audit, refusals. The same history for the same day; only the tokens are new. Without
--db the ledger is thrown away in the end.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import privloss as pl
from privloss.ledger.ledger import Ledger
from privloss.service.serve import run
from privloss.service.settings import Settings
from privloss.service.tokens import Tokens

ANALYSTS = ("alice", "bob", "carol")
QUESTIONS = ("mean age", "length of stay", "readmissions", "infections by ward", "waiting times", "costs by case")
NOISE = (12.0, 16.0, 24.0, 32.0)
AUDIT = pl.audit.counts(
    tp=58, positives=100, fp=43, negatives=100, delta=1e-6, trials="independent", claim=3.0, method="clopper-pearson"
)


@dataclass
class Year:
    """The ledger, the day it is in the story, and the dice."""

    ledger: Ledger
    day: date
    dice: random.Random
    seconds: float = 0.0
    number: int = 0

    def __call__(self) -> float:
        """The ledger's clock."""
        midnight = datetime(self.day.year, self.day.month, self.day.day, 8, tzinfo=UTC)
        self.seconds += 1
        return midnight.timestamp() + self.seconds

    def next_day(self) -> None:
        self.day, self.seconds = self.day + timedelta(days=1), 0.0

    def ask(self, dataset: str, analyst: str, what: Any, **more: Any) -> None:
        """One analysis, as far as its analyst took it; or a refusal, which stands in the history too."""
        self.number += 1
        label = self.dice.choice(QUESTIONS)
        key = f"{analyst}/{label.replace(' ', '-')}-{self.number:03d}"
        given = {"cost": what} if isinstance(what, str) else {"plan": what}
        try:
            self.ledger.reserve(dataset, key=key, analyst=analyst, label=label, **given, **more)
        except pl.RefusedError:
            return
        if self.dice.random() < 0.07:
            self.ledger.void(key, reason="the question was withdrawn")
            return
        self.ledger.start(key)
        self.ledger.commit(key)


def set_up(ledger: Ledger) -> None:
    ledger.add_group("hospital", adjacency="add-remove", unit="patient", reason="all that is about our patients")
    ledger.set_budget("hospital", currency="zcdp", cap="1.5", delta="1e-6", reason="board decision 12")
    ledger.add_dataset("visits", adjacency="add-remove", unit="patient", parent="hospital", labels={"owner": "ward 3"})
    ledger.set_budget("visits", currency="zcdp", cap="1", delta="1e-6", reason="board decision 12")
    ledger.set_budget("visits", currency="zcdp", cap="0.1", delta="1e-6", every="quarter", reason="a quarter each")
    for analyst, cap in zip(ANALYSTS, ("0.2", "0.09", "0.2"), strict=True):
        ledger.set_budget("visits", currency="zcdp", cap=cap, delta="1e-6", analyst=analyst, reason="by their hours")
    ledger.add_dataset("survey", adjacency="add-remove", unit="respondent", reason="the yearly survey")
    ledger.set_budget("survey", currency="pure", cap="5", reason="promised on its first page")
    ledger.add_dataset("wearables", adjacency="add-remove", unit="day of a patient", blocks="month")
    ledger.set_budget("wearables", currency="approx", cap="0.6", delta="1e-5", filter="basic")


def live(year: Year, last: date) -> None:
    """Day by day."""
    begun = year.day
    while year.day < last:
        passed = (year.day - begun).days
        if year.dice.random() < 0.55:
            year.ask("visits", year.dice.choice(ANALYSTS), pl.Gaussian(noise_multiplier=year.dice.choice(NOISE)))
        if year.dice.random() < 0.12:
            year.ask("survey", year.dice.choice(ANALYSTS), year.dice.choice(("1/11", "0.05", "0.2")))
        if year.dice.random() < 0.1:
            month = f"{year.day.year}-{year.day.month:02d}"
            year.ask(
                "wearables",
                year.dice.choice(ANALYSTS),
                year.dice.choice(("0.1", "0.25")),
                cost_delta="1e-7",
                blocks=month,
            )
        if passed == 140:
            year.ledger.freeze("survey", reason="a laptop with answers was lost; nothing is released until it is clear")
        if passed == 149:
            year.ledger.freeze("survey", False, reason="it was found, and was encrypted")
        if passed == 200:
            year.ledger.attach_audit(AUDIT, dataset="visits", date=year.day.isoformat(), reason="the yearly review")
        year.next_day()
    year.ledger.reserve("survey", cost="0.05", key="alice/next-week", analyst="alice", lease=14 * 86400.0)
    for _ in range(3):
        year.ask("visits", "bob", pl.Gaussian(noise_multiplier=1.0))


def make(place: str, today: date) -> dict[str, str]:
    """The ledger of the year before today; a token for each role."""
    year = Year(Ledger.create(place, actor="demo", group=True), today - timedelta(days=366), random.Random(7))
    with closing(year.ledger) as ledger:
        ledger.clock = year
        set_up(ledger)
        live(year, today - timedelta(days=1))
        tokens = Tokens(ledger.store)
        found = {role: tokens.create(role, days=7, note="demo")[1] for role in ("steward", "auditor")}
        return found | {"analyst": tokens.create("analyst", analyst="alice", datasets=None, days=7, note="demo")[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--db", help="Keep the ledger there.")
    parser.add_argument("--today", type=date.fromisoformat, default=datetime.now(UTC).date(), help="2026-11-19")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="privloss-demo-") as home:
        place = given.db or str(Path(home) / "demo.db")
        print("privloss: a year goes by ...", flush=True)
        tokens = make(place, given.today)
        print("Log in with a token (they hold for a week):")
        for role in ("steward", "analyst", "auditor"):
            print(f"  {role + (' (alice)' if role == 'analyst' else ''):<16} {tokens[role]}")
        print("Ctrl-C ends it.", flush=True)
        run(place, Settings(port=given.port))


if __name__ == "__main__":
    main()
