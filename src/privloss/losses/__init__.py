"""Room 2, the worst neighbours: from (mechanism, adjacency) to the privacy loss and its function K(z)."""
