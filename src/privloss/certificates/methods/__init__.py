"""Ways to read delta off a pair in ball arithmetic, other than the line."""
