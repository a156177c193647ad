"""A number or a score with noise."""
