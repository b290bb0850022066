"""What all signs have in common."""

from __future__ import annotations

from typing import ClassVar


class Sign:
    """`text` is None until there is something to say; then `step` is when. What a sign is told later changes neither."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self.text: str | None = None
        self.step = 0

    def say(self, step: int, text: str) -> None:
        if self.text is None:
            self.step, self.text = step, text


def shown(value: float) -> str:
    """A number as it is shown to the user: three digits."""
    return f"{value:.3g}"
