"""The attributes of any object, without running the user's code."""

from __future__ import annotations

from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any

OF_THE_INTERPRETER = (GetSetDescriptorType, MemberDescriptorType)


def attributes_of(value: object) -> dict[str, Any]:
    """Its `__dict__` as the interpreter keeps it; empty where there is none, or where a class puts a property in its place (a proxy)."""
    for base in type(value).__mro__:
        descriptor = base.__dict__.get("__dict__")
        if descriptor is not None:
            found = descriptor.__get__(value) if type(descriptor) in OF_THE_INTERPRETER else None
            return found if type(found) is dict else {}
    return {}
