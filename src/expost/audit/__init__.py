"""The losses of many subjects, from tables."""
