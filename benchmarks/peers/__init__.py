"""General solvers on the same instances, to the same tolerance, each on one thread."""
