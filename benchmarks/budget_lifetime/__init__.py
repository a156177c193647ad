"""The count of queries that a budget of 1 lasts for, in many settings.

The tables and figures of docs/explanation/benchmarks.md:

    python -m benchmarks.budget_lifetime docs/_static
"""
