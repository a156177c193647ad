"""Terms: what one response adds to the log-likelihood, on a set or on a box."""
