"""Exponentials."""
