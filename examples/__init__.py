"""Worked examples that use the public API only."""
