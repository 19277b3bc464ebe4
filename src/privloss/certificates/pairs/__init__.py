"""The pairs of a plan, for the checker: written anew, on purpose."""
