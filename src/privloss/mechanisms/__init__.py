"""Room 1, what ran: frozen descriptions, no numerics."""
