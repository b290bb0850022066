"""Changes of the user's line that several causes advise."""

from __future__ import annotations

from whynan.core.catalogue import Edit

FLOORED_DIVISOR = Edit(
    "divisor", "{}.clamp_min(1e-6)", calls=("div", "true_divide", "divide"), half="{}.clamp_min(1e-3)", number="max({}, 1e-6)"
)
