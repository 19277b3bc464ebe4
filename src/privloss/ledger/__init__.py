"""What is left of a budget."""
