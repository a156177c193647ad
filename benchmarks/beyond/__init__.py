"""When is realized accounting worth it? Queries that a budget of 1 lasts for, in many settings.

The tables and pictures of docs/explanation/when.md:

    python -m benchmarks.beyond docs/_static
"""
