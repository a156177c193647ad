"""The losses of many subjects at once, and the tables that they are read from and written to."""
