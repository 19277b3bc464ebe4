-- Version 5: what the service needs to know its callers: tokens and the sessions of its pages, as hashes. They are not part
-- of the history, nor of a backup: after a restore nobody can act until tokens are issued.
CREATE TABLE token (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('analyst', 'steward', 'auditor')),
  analyst TEXT NOT NULL,
  datasets TEXT NOT NULL,
  note TEXT NOT NULL,
  created REAL NOT NULL,
  expires REAL NOT NULL,
  revoked REAL,
  used TEXT NOT NULL DEFAULT ''
);
CREATE TABLE session (
  hash TEXT PRIMARY KEY,
  token TEXT NOT NULL REFERENCES token (id),
  form TEXT NOT NULL,
  created REAL NOT NULL,
  seen REAL NOT NULL
);
CREATE INDEX session_by_token ON session (token);
