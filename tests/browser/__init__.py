"""Every kind of page in a real browser: ``make test-browser``."""
