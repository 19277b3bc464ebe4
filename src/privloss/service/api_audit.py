"""Routes of auditors: verify, export."""

from __future__ import annotations

import json
import tempfile
from typing import IO, Any

from privloss.service import sheets
from privloss.service.calls import Answer, Call
from privloss.service.problems import Problem

_IN_MEMORY = 2**20


def verify_start(call: Call) -> Answer:
    return Answer(call.services.verifying.start(), 202)


def verify_last(call: Call) -> Answer:
    found = call.services.verifying.last()
    if found is None:
        raise Problem(404, "not-verified", "nothing was verified since the service started; POST /v1/verify does")
    return Answer(found)


def export(call: Call) -> Answer:
    """Canonical JSON lines, which is what a backup is. They are read at once and sent at the client's pace, so that a
    slow client holds no snapshot of the database open."""
    held: IO[Any] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
    for line in call.ledger.export():
        held.write(line.encode() + b"\n")
    held.seek(0)
    return Answer(
        held, media="application/x-ndjson", headers={"Content-Disposition": 'attachment; filename="ledger.jsonl"'}
    )


def export_csv(call: Call) -> Answer:
    """The same events as a sheet; an event of several datasets stands there once for each."""
    store = call.ledger.store
    with store.reading() as cursor:
        rows = ((entry.chain, {**json.loads(entry.body), "seq": entry.seq}) for entry in store.entries(cursor))
        return sheets.answer(rows, "ledger.csv", {})
