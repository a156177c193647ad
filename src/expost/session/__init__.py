"""A subject's side: decide, sample, record, release."""
