"""Parameters, buffers and restored state."""
