-- Version 3: one chain of events for each dataset (and one, '', for the ledger itself, which holds all older events);
-- quotas, periods, groups and blocks; the hash of a run's token instead of the token. *_units are texts of sixty digits,
-- which sort like the numbers. Tables are made anew; what they hold is written again from the events.
DROP TABLE balance;
DROP TABLE analysis;
DROP TABLE open_lease;
DROP TABLE dataset;
CREATE TABLE dataset (
  name TEXT PRIMARY KEY,
  adjacency TEXT NOT NULL,
  unit TEXT NOT NULL,
  frozen INTEGER NOT NULL DEFAULT 0,
  settings TEXT NOT NULL DEFAULT '{}',
  seq INTEGER NOT NULL,
  head TEXT NOT NULL
);
CREATE TABLE balance (
  dataset TEXT NOT NULL REFERENCES dataset (name),
  owner TEXT NOT NULL,
  component TEXT NOT NULL,
  cap TEXT,
  committed TEXT NOT NULL,
  reserved TEXT NOT NULL,
  total_units TEXT NOT NULL CHECK (length(total_units) = 60 AND total_units >= '0'),
  cap_units TEXT CHECK (cap_units IS NULL OR length(cap_units) = 60),
  PRIMARY KEY (dataset, owner, component),
  CHECK (total_units <= cap_units)
);
CREATE TABLE analysis (
  key TEXT PRIMARY KEY,
  request TEXT NOT NULL,
  analyst TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('RESERVED', 'STARTED', 'COMMITTED', 'VOIDED')),
  lease REAL NOT NULL,
  charges TEXT NOT NULL,
  held_on TEXT NOT NULL,
  run TEXT NOT NULL DEFAULT ''
);
CREATE TABLE open_lease (
  dataset TEXT NOT NULL,
  key TEXT NOT NULL,
  lease REAL NOT NULL,
  PRIMARY KEY (dataset, key)
);
CREATE INDEX open_lease_by_time ON open_lease (dataset, lease);
CREATE INDEX open_lease_by_key ON open_lease (key);
ALTER TABLE event RENAME TO event_2;
CREATE TABLE event (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  chain TEXT NOT NULL,
  seq INTEGER NOT NULL,
  previous TEXT NOT NULL,
  body TEXT NOT NULL,
  hash TEXT NOT NULL,
  UNIQUE (chain, seq)
);
INSERT INTO event (number, chain, seq, previous, body, hash)
  SELECT seq, '', seq, previous, body, hash FROM event_2 ORDER BY seq;
DROP TABLE event_2;
INSERT INTO dataset (name, adjacency, unit, seq, head) SELECT '', '', '', count(*), coalesce(
  (SELECT hash FROM event ORDER BY number DESC LIMIT 1),
  '0000000000000000000000000000000000000000000000000000000000000000') FROM event;
CREATE TRIGGER event_no_update BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_no_replace BEFORE INSERT ON event WHEN EXISTS (SELECT 1 FROM event WHERE chain = NEW.chain AND seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
