"""What a response says: a term of the log-likelihood, on a set or on a box."""
