"""What people already have, taken in: fitted models and tables of answers."""
