"""Queries that are given by a table of probabilities or scores."""
