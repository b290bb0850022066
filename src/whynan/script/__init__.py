"""Runs an unmodified script: import hook, rewriting into attempts, launching. Knows no framework."""
