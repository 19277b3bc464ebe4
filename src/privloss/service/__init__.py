"""A ledger that people and programs reach over HTTP: tokens, roles, limits, and pages; no rule about budgets."""
