"""One-bit queries about an affine score."""
