-- Version 2: which caller started a key, so that no other is let in under it.
ALTER TABLE analysis ADD COLUMN token TEXT NOT NULL DEFAULT '';
