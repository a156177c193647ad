"""The paper's four health regressions, trained and asked."""
