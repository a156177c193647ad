"""Losses with a proof, and the checker that needs nothing else."""
