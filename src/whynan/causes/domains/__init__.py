"""Arguments outside a function's domain."""
