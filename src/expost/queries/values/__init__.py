"""Queries about the value itself."""
