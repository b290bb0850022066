"""Divisions."""
