"""Numbers too large or too small for their format."""
