"""Derivatives without a finite value."""
