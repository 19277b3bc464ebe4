-- The ledger, version 1. Amounts are exact rationals as text; *_units are ceil(amount * 2^40) (2^62 for delta).
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE dataset (
  name TEXT PRIMARY KEY,
  adjacency TEXT NOT NULL,
  unit TEXT NOT NULL,
  frozen INTEGER NOT NULL DEFAULT 0,
  budgets TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE balance (
  dataset TEXT NOT NULL REFERENCES dataset (name),
  owner TEXT NOT NULL,
  component TEXT NOT NULL,
  cap TEXT NOT NULL,
  committed TEXT NOT NULL,
  reserved TEXT NOT NULL,
  total_units INTEGER NOT NULL CHECK (total_units >= 0),
  cap_units INTEGER NOT NULL,
  PRIMARY KEY (dataset, owner, component),
  CHECK (total_units <= cap_units)
);
CREATE TABLE analysis (
  key TEXT PRIMARY KEY,
  request TEXT NOT NULL,
  analyst TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('RESERVED', 'STARTED', 'COMMITTED', 'VOIDED')),
  lease REAL NOT NULL,
  charges TEXT NOT NULL
);
CREATE TABLE open_lease (
  dataset TEXT NOT NULL,
  key TEXT NOT NULL,
  lease REAL NOT NULL,
  PRIMARY KEY (dataset, key)
);
CREATE INDEX open_lease_by_time ON open_lease (dataset, lease);
CREATE INDEX open_lease_by_key ON open_lease (key);
CREATE TABLE event (
  seq INTEGER PRIMARY KEY,
  previous TEXT NOT NULL,
  body TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE
);
CREATE TRIGGER event_no_update BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
