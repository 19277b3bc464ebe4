"""What people see: the calculator and the ledger as pages, drawn here and complete without a script."""
