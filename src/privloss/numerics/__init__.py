"""Numbers and their errors; no privacy is known here."""
