"""Sizes of memory as options name them."""

from __future__ import annotations

import re

import click

UNITS = {"": 0, "b": 0, "k": 1, "kb": 1, "m": 2, "mb": 2, "g": 3, "gb": 3, "kib": 1, "mib": 2, "gib": 3}


class History(click.ParamType[int | None]):
    """`auto` (None), `off` (0) or a number of bytes such as `500MB`, `2GiB`; units count in steps of 1024."""

    name = "history"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        text = str(value).strip().lower()
        if text in ("auto", "off"):
            return None if text == "auto" else 0
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
        if found is None or found[2] not in UNITS or not float(found[1]):
            self.fail(f"{value!r} is neither auto, off nor a size such as 500MB", param, ctx)
        return max(1, int(float(found[1]) * 1024 ** UNITS[found[2]]))
