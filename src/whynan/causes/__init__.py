"""The catalogue of causes: `<family>/<cause>.py`, one cause a file."""

from whynan.causes._catalogue import catalogue

__all__ = ["catalogue"]
