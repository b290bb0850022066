"""A package of the user's."""

from .inner import train

value = 1
