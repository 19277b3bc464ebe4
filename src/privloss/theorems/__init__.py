"""The textbook: every theorem as a function."""
