-- Version 7: a commit writes fewer pages. An index of events by their place in a chain has as many ends as there are chains,
-- and each commit wrote a page for every one of them; now places are noted two thousand at a time, and the view `chained`
-- looks through those that are not noted yet. That an event takes the next free place in its chain is checked against the
-- chain's end, so events are written before it.
DROP TRIGGER event_no_update;
DROP TRIGGER event_no_delete;
DROP TRIGGER event_no_replace;
ALTER TABLE event RENAME TO event_6;
CREATE TABLE event (
  number INTEGER PRIMARY KEY,
  chain TEXT NOT NULL,
  seq INTEGER NOT NULL,
  previous TEXT NOT NULL,
  body TEXT NOT NULL,
  hash TEXT NOT NULL
);
INSERT INTO event (number, chain, seq, previous, body, hash)
  SELECT number, chain, seq, previous, body, hash FROM event_6 ORDER BY number;
DROP TABLE event_6;
CREATE TABLE place (
  chain TEXT NOT NULL,
  seq INTEGER NOT NULL,
  number INTEGER NOT NULL,
  PRIMARY KEY (chain, seq)
) WITHOUT ROWID;
CREATE TABLE placed (number INTEGER NOT NULL);
INSERT INTO place (chain, seq, number) SELECT chain, seq, number FROM event ORDER BY chain, seq;
INSERT INTO placed (number) SELECT coalesce(max(number), 0) FROM event;
CREATE VIEW chained (number, chain, seq, body, hash) AS
  SELECT p.number, p.chain, p.seq, e.body, e.hash FROM place AS p CROSS JOIN event AS e
    WHERE e.number = p.number AND e.chain = p.chain AND e.seq = p.seq
  UNION ALL
  SELECT number, chain, seq, body, hash FROM event WHERE number > (SELECT number FROM placed);
CREATE TRIGGER event_no_update BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_no_delete BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_no_replace BEFORE INSERT ON event WHEN EXISTS (SELECT 1 FROM event WHERE number = NEW.number) OR NEW.seq <= (SELECT seq FROM dataset WHERE name = NEW.chain) BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_placed AFTER INSERT ON event WHEN NEW.number % 512 = 0 AND NEW.number >= (SELECT number FROM placed) + 2048 BEGIN INSERT OR IGNORE INTO place (chain, seq, number) SELECT chain, seq, number FROM event WHERE number > (SELECT number FROM placed) ORDER BY chain, seq; UPDATE placed SET number = NEW.number; END;
