"""Ways to bound delta of a plan from the moment generating functions of its pairs, in ball arithmetic."""
