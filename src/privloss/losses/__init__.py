"""Privacy losses: pairs of distributions as the engine sees them; no mechanism is known here."""
