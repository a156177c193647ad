"""Filters: a budget and its rule."""
