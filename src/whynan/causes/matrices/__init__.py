"""Matrix decompositions."""
