"""Reading a distribution off one line of its transform."""
