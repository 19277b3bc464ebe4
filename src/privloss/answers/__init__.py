"""What may be said of a plan."""
