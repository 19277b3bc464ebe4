"""A ledger that a service keeps, asked over HTTP with the standard library alone."""
