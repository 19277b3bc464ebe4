"""What an audit has found, as a ledger's command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privloss.audit.record import Written, day_of, facts, read_audit
from privloss.errors import InvalidInput
from privloss.ledger import names
from privloss.ledger.commands import Attach, Note

Evidence = Written | Mapping[str, Any]  # an audit, or its JSON


def attaching(audit: Evidence, dataset: str | None, key: str | None, date: Any, note: Note) -> Attach:
    """About a key, or about a dataset or group."""
    if (dataset is None) == (key is None):
        raise InvalidInput(f"dataset = {dataset!r}, key = {key!r}: give exactly one of them.")
    found = facts(read_audit(audit), day_of(date))
    if key is not None:
        return Attach(found, key=names.name("key", key), note=note)
    return Attach(found, account=names.name("dataset", dataset), note=note)
