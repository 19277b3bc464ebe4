"""What is left: filters, and the ledger that keeps them (docs/ledger.md)."""
