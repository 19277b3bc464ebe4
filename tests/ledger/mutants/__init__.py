"""The safeguards of the ledger, and how each is taken out (`mutations.py` looks whether a test notices)."""

from __future__ import annotations

from tests.ledger.mutants.audit import AUDIT
from tests.ledger.mutants.rules import RULES
from tests.ledger.mutants.stores import STORES

MUTANTS = STORES + AUDIT + RULES
