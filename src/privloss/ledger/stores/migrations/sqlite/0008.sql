-- Version 8: a commit writes fewer pages, in fewer statements. The ends of chains and the balances, which every commit changes,
-- lie beside each other in one table: an account's row without a component has the end of its chain. A key names the event
-- that reserved it, and what it repeated of that event is read from there; keys of older releases, and those restored, name
-- none, and have everything in a table beside it. Views show the tables as they were. An event must follow on the end of its
-- chain, and is then the end. Few leases are open for long: only those that still are after some events are noted in the order
-- in which they end, and a view looks through the events that came since.
DROP TRIGGER event_no_replace;
CREATE TABLE account (
  name TEXT PRIMARY KEY,
  adjacency TEXT NOT NULL,
  unit TEXT NOT NULL,
  frozen INTEGER NOT NULL DEFAULT 0,
  settings TEXT NOT NULL DEFAULT '{}'
) WITHOUT ROWID;
CREATE TABLE standing (
  dataset TEXT NOT NULL REFERENCES account (name),
  owner TEXT NOT NULL,
  component TEXT NOT NULL,
  cap TEXT,
  committed TEXT,
  reserved TEXT,
  total_units TEXT CHECK (length(total_units) = 60 AND total_units >= '0'),
  cap_units TEXT CHECK (cap_units IS NULL OR length(cap_units) = 60),
  seq INTEGER,
  head TEXT,
  PRIMARY KEY (dataset, owner, component),
  CHECK (total_units <= cap_units),
  CHECK ((component = '') = (seq IS NOT NULL AND head IS NOT NULL)),
  CHECK ((component <> '') = (committed IS NOT NULL AND reserved IS NOT NULL AND total_units IS NOT NULL))
);
INSERT INTO account (name, adjacency, unit, frozen, settings) SELECT name, adjacency, unit, frozen, settings FROM dataset;
INSERT INTO standing (dataset, owner, component, cap, committed, reserved, total_units, cap_units)
  SELECT dataset, owner, component, cap, committed, reserved, total_units, cap_units FROM balance;
INSERT INTO standing (dataset, owner, component, seq, head) SELECT name, '', '', seq, head FROM dataset;
DROP TABLE balance;
DROP TABLE dataset;
CREATE VIEW dataset (name, adjacency, unit, frozen, settings, seq, head) AS
  SELECT a.name, a.adjacency, a.unit, a.frozen, a.settings, s.seq, s.head
  FROM account AS a JOIN standing AS s ON s.dataset = a.name AND s.owner = '' AND s.component = '';
CREATE TRIGGER dataset_insert INSTEAD OF INSERT ON dataset BEGIN INSERT INTO account (name, adjacency, unit, frozen, settings) VALUES (NEW.name, NEW.adjacency, NEW.unit, NEW.frozen, NEW.settings); INSERT INTO standing (dataset, owner, component, seq, head) VALUES (NEW.name, '', '', NEW.seq, NEW.head); END;
CREATE TRIGGER dataset_update INSTEAD OF UPDATE ON dataset BEGIN UPDATE account SET frozen = NEW.frozen, settings = NEW.settings WHERE name = OLD.name; UPDATE standing SET seq = NEW.seq, head = NEW.head WHERE dataset = OLD.name AND owner = '' AND component = ''; END;
CREATE VIEW balance (dataset, owner, component, cap, committed, reserved, total_units, cap_units) AS
  SELECT dataset, owner, component, cap, committed, reserved, total_units, cap_units FROM standing WHERE component <> '';
CREATE TABLE claim (
  key TEXT PRIMARY KEY,
  number INTEGER NOT NULL,
  lease REAL NOT NULL,
  state TEXT CHECK (state IN ('STARTED', 'COMMITTED', 'VOIDED')),
  run TEXT
) WITHOUT ROWID;
CREATE TABLE whole_claim (
  key TEXT PRIMARY KEY REFERENCES claim (key),
  request TEXT NOT NULL,
  analyst TEXT NOT NULL,
  charges TEXT NOT NULL,
  held_on TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO claim SELECT key, 0, lease, nullif(state, 'RESERVED'), run FROM analysis;
INSERT INTO whole_claim SELECT key, request, analyst, charges, held_on FROM analysis;
DROP TABLE analysis;
CREATE VIEW analysis (key, request, analyst, state, lease, charges, held_on, run) AS
  SELECT c.key, coalesce(w.request, json_extract(e.body, '$.request'), ''),
    coalesce(w.analyst, json_extract(e.body, '$.analyst'), ''), coalesce(c.state, 'RESERVED'), c.lease,
    coalesce(w.charges, json_extract(e.body, '$.charges'), '{}'), coalesce(w.held_on, json_extract(e.body, '$.on'), '{}'),
    coalesce(c.run, '')
  FROM claim AS c LEFT JOIN whole_claim AS w ON w.key = c.key AND c.number = 0
    LEFT JOIN event AS e ON e.number = c.number AND json_extract(e.body, '$.key') = c.key;
CREATE TRIGGER analysis_insert INSTEAD OF INSERT ON analysis BEGIN INSERT INTO claim VALUES (NEW.key, 0, NEW.lease, nullif(NEW.state, 'RESERVED'), NEW.run); INSERT INTO whole_claim VALUES (NEW.key, NEW.request, NEW.analyst, NEW.charges, NEW.held_on); END;
ALTER TABLE open_lease RENAME TO noted_lease;
CREATE TABLE leased (number INTEGER NOT NULL);
INSERT INTO leased SELECT coalesce(max(number), 0) FROM event;
CREATE VIEW recent_lease (dataset, lease, key) AS
  SELECT e.chain, c.lease, c.key FROM event AS e CROSS JOIN claim AS c
  WHERE e.number > (SELECT number FROM leased) AND json_extract(e.body, '$.kind') = 'reserved'
    AND c.key = json_extract(e.body, '$.key') AND c.number > 0 AND coalesce(c.state, 'STARTED') = 'STARTED';
CREATE VIEW open_lease (dataset, lease, key) AS
  SELECT dataset, lease, key FROM noted_lease UNION ALL SELECT dataset, lease, key FROM recent_lease;
CREATE TRIGGER event_no_replace BEFORE INSERT ON event WHEN (NEW.number > 0 AND EXISTS (SELECT 1 FROM event WHERE number = NEW.number)) OR (NEW.seq, NEW.previous) <> (SELECT seq + 1, head FROM standing WHERE dataset = NEW.chain AND owner = '' AND component = '') BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_end AFTER INSERT ON event BEGIN UPDATE standing SET seq = NEW.seq, head = NEW.hash WHERE dataset = NEW.chain AND owner = '' AND component = ''; END;
CREATE TRIGGER event_leased AFTER INSERT ON event WHEN NEW.number % 64 = 0 BEGIN INSERT OR IGNORE INTO noted_lease (dataset, lease, key) SELECT dataset, lease, key FROM recent_lease; UPDATE leased SET number = NEW.number; END;
