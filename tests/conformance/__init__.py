"""Conformance vectors: what every implementation of the specification must say."""
