"""What happened, in words, tables, figures and pages."""
