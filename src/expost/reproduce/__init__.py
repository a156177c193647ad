"""The experiments of the paper (section 6 and appendix E), run anew with exact accounting."""
