"""The optimizer's own arithmetic."""
