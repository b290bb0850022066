"""Masks and selections."""
