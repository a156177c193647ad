"""Queries from models that other libraries have fitted: affine scores, and curves of them."""
