"""Does a service keep to its OpenAPI document? Few requests in the suite; more by
``python -m tests.client.contract [--examples N] [--seed S]``, which starts a service of its own."""

from __future__ import annotations

import argparse
import copy
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from privloss.ledger.ledger import Ledger
from privloss.service.openapi import document
from privloss.service.settings import Settings
from privloss.service.workers import Workers
from tests.client.real import Real

CHECKS = (not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance)
FEW = 3  # of one operation in one role
NAMES, KEYS = ["census", "taxes"], ["k1", "k2", "alice/k1"]
ROLES = ("analyst", "steward", "auditor", "nobody")


def likely() -> dict[str, Any]:
    """The document with names that are there, amounts that are some, and plans that are plans: otherwise hardly a
    request gets beyond its first name."""
    made = copy.deepcopy(document())
    plans = [{"steps": [{"mechanism": "gaussian", "noise_multiplier": 3.0}]}, {"steps": []}]
    sizes = ["1/11", "0.5", "1e-6", "0", "x"]
    for operations in made["paths"].values():
        for operation in operations.values():
            for each in operation.get("parameters", ()):
                each["schema"] = {"dataset": {"enum": NAMES}, "key": {"enum": KEYS}}.get(each["name"], each["schema"])
    for schema in made["components"]["schemas"].values():
        fields = schema["properties"] if schema.get("additionalProperties") is False else {}  # of requests
        kept = {"datasets": {"type": "array", "items": {"enum": NAMES}, "minItems": 1, "uniqueItems": True}}
        kept |= {"plan": {"enum": plans}, "cost": {"enum": sizes}, "cap": {"enum": sizes}, "run": {"enum": ["r" * 16]}}
        kept |= {"adjacency": {"enum": ["add-remove", "zero-out"]}, "currency": {"enum": ["pure", "zcdp"]}}
        fields |= {name: each for name, each in kept.items() if name in fields}
    bodies = made["components"]["schemas"]
    asked = {name: bodies["Reserve"]["properties"][name] for name in ("datasets", "cost")}
    bodies["Reserve"] |= {"properties": asked, "required": list(asked)}  # so that some are held
    return made


class Contract:
    """Asks a service in four roles."""

    def __init__(self, service: Real) -> None:
        self.service = service
        for name, currency in (("census", "pure"), ("taxes", "zcdp")):
            service.ledger.add_dataset(name, adjacency="add-remove")
            service.ledger.set_budget(name, currency=currency, cap="100")
        self.tokens = {role: service.token(role) for role in ("steward", "auditor")} | {"analyst": service.analyst()}
        self.statuses: Counter[int] = Counter()

    @property
    def asked(self) -> int:
        return self.statuses.total()

    def examine(self, operation: Any, role: str, examples: int, start: int = 0) -> None:
        headers = {} if role == "nobody" else {"Authorization": f"Bearer {self.tokens[role]}"}

        @seed(start)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            case.headers = {k: v for k, v in (case.headers or {}).items() if k.lower() != "authorization"}
            reply = case.call(base_url=self.service.place, headers=headers)
            self.statuses[reply.status_code] += 1
            case.validate_response(reply, checks=CHECKS)

        ask()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=100, help="for each route and role")
    parser.add_argument("--seed", type=int, default=1)
    given_ = parser.parse_args()
    workers = Workers(Settings())
    workers.open()
    with tempfile.TemporaryDirectory() as home:
        service = Real(Ledger.create(str(Path(home) / "x.db"), group=True), workers)
        try:
            contract = Contract(service)
            for whole in (document(), likely()):
                for operation in schemathesis.openapi.from_dict(whole).get_all_operations():
                    for role in ROLES:
                        contract.examine(operation.ok(), role, given_.examples, given_.seed)
                    print(operation.ok().label, dict(sorted(contract.statuses.items())), flush=True)
            assert service.ledger.verify().clean
        finally:
            service.close()
            workers.close()
    print(f"{contract.asked} requests, as the document says")


if __name__ == "__main__":
    main()
