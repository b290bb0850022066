"""Runs a training script, stops at the first harmful NaN or Inf, and says where it was born and why."""

__version__ = "0.1.0"

__all__ = ["__version__"]
