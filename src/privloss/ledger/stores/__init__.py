"""Where a ledger is kept."""
