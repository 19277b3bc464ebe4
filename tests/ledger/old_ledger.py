"""How tests/data/ledger-0.1.0.sqlite was made, by privloss 0.1.0 itself, and what was asked of it.

``PYTHONPATH=<0.1.0>/src python tests/ledger/old_ledger.py tests/data`` writes the ledger and what 0.1.0 said about
it. Only names that both releases have are used.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import privloss as pl

NOW = 1_750_000_000.0
NAME = "ledger-0.1.0"
BUDGETS: dict[str, dict[str, Any]] = {
    "census": {"currency": "pure", "cap": "2"},
    "clinic": {"currency": "zcdp", "cap": "0.5", "delta": "1e-6"},
    "survey": {"currency": "approx", "cap": "3", "delta": "1e-5"},
    "traffic": {"currency": "approx", "cap": "12", "delta": "1e-5", "filter": "advanced"},
    "images": {"currency": "rdp", "cap": "8", "delta": "1e-5"},
    "genomes": {"currency": "gdp", "cap": "1", "delta": "1e-6"},
    "letters": {"currency": "approx", "cap": "20", "delta": "1e-4"},
}
ADJACENCY = {"letters": "replace-one"}  # the others: add-remove
QUOTAS = {"census": {"ann": "1/2", "bob": "0.75"}}
TRAINING = {
    "steps": [
        {"mechanism": "gaussian", "noise_multiplier": 4.0, "sampling": {"scheme": "poisson", "rate": 0.01}, "count": 9},
        {"mechanism": "gaussian", "noise_multiplier": 20.0},
    ]
}
EPOCH = {
    "adjacency": "replace-one",
    "steps": [{"mechanism": "gaussian", "noise_multiplier": 6.0, "sampling": {"scheme": "shuffle", "steps": 10}}],
}
LAPLACE = {"steps": [{"mechanism": "laplace", "scale": 20.0, "count": 3}, {"mechanism": "pure-dp", "epsilon": 0.05}]}
NOISE = {"steps": [{"mechanism": "gaussian", "noise_multiplier": 10.0, "count": 2}]}
# key -> what is asked, and how it is moved afterwards
REQUESTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "typed": ({"datasets": "census", "cost": "1/11", "analyst": "ann"}, ("start", "commit")),
    "tiny": ({"datasets": "census", "cost": "1e-320", "analyst": "bob"}, ("start", "commit")),
    "given back": ({"datasets": "census", "cost": "0.25"}, ("void",)),
    "laplace": ({"datasets": "census", "plan": LAPLACE, "analyst": "bob"}, ("start", "commit")),
    "two at once": ({"datasets": ["survey", "census"], "plan": LAPLACE}, ("start",)),
    "rho": ({"datasets": "clinic", "cost": "0.0625"}, ("start",)),
    "noise": ({"datasets": "clinic", "plan": NOISE}, ("start", "commit")),
    "epsilon and delta": ({"datasets": "survey", "cost": "0.1", "cost_delta": "1e-7"}, ("start", "commit")),
    "training": ({"datasets": "survey", "plan": TRAINING, "cost_delta": "1e-6"}, ("start", "commit")),
    "epoch": ({"datasets": "letters", "plan": EPOCH}, ()),
    "squared": ({"datasets": "traffic", "plan": NOISE}, ("start", "commit")),
    "every order": ({"datasets": "images", "plan": NOISE}, ("start", "commit")),
    "mu": ({"datasets": "genomes", "plan": NOISE}, ()),
}


def asked(request: dict[str, Any]) -> dict[str, Any]:
    """A request with its plan as an object."""
    plan = request.get("plan")
    return request if plan is None else {**request, "plan": pl.Plan.from_dict(plan)}


def fill(ledger: Any, quotas: dict[str, dict[str, str]] = QUOTAS) -> None:
    for name, budget in BUDGETS.items():
        ledger.add_dataset(name, adjacency=ADJACENCY.get(name, "add-remove"), unit="person")
        ledger.set_budget(name, **budget)
        for analyst, cap in quotas.get(name, {}).items():
            ledger.set_budget(name, currency="pure", cap=cap, analyst=analyst)
    for key, (request, moves) in REQUESTS.items():
        ledger.reserve(**asked(request), key=key)
        for move in moves:
            getattr(ledger, move)(key)
    ledger.freeze("traffic")


def said(ledger: Any) -> dict[str, Any]:
    """What a ledger says about itself."""
    audit = ledger.verify()
    return {
        "head": audit.head,
        "events": audit.events,
        "problems": list(audit.problems),
        "status": {name: ledger.status(name) for name in BUDGETS},
        "export": [json.loads(line) for line in ledger.export()],
    }


def main(home: Path) -> None:
    if pl.__version__ != "0.1.0":
        raise SystemExit(f"privloss {pl.__version__}: the sources of 0.1.0 are needed.")
    path = home / f"{NAME}.sqlite"
    ledger = pl.Ledger.create(str(path))
    ledger.clock = lambda: NOW
    fill(ledger)
    (home / f"{NAME}.json").write_text(json.dumps(said(ledger), indent=1) + "\n", encoding="utf-8")
    ledger.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
