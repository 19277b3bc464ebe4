"""Room 3, what may be said: every question about a plan, answered with an interval."""
