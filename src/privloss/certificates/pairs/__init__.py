"""What one step tells about a record: pairs of output distributions in ball arithmetic, from step to plan."""
