"""Room 6, the doors: parse, call, print; no formula here."""
