"""What was realized: the log-likelihood of a transcript, its extremes, and the way there."""
