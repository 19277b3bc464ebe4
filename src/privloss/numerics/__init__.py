"""The floor of the house: numbers with proven error. Knows nothing of privacy mechanisms."""
