"""Data, labels and their scale."""
