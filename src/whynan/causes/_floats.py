"""The limits of the floating-point formats, by the names that the record uses."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Float:
    """`normal` is the smallest number at full precision, `least` the smallest above 0, `eps` the gap after 1."""

    largest: float
    normal: float
    least: float
    eps: float

    @property
    def exp_limit(self) -> float:
        """The largest exponent whose exponential is finite."""
        return math.log(self.largest)

    @property
    def exp_floor(self) -> float:
        """The exponent below which the exponential rounds to 0."""
        return math.log(self.least) - math.log(2)


FLOATS = {
    "float16": Float(65504.0, 2.0**-14, 2.0**-24, 2.0**-10),
    "bfloat16": Float(3.3895313892515355e38, 2.0**-126, 2.0**-133, 2.0**-7),
    "float32": Float(3.4028234663852886e38, 2.0**-126, 2.0**-149, 2.0**-23),
    "float64": Float(1.7976931348623157e308, 2.0**-1022, 2.0**-1074, 2.0**-52),
}


def limits(dtype: str) -> Float | None:
    return FLOATS.get(dtype)


def rounded(value: float, dtype: str) -> float:
    """The number that the format holds in place of `value`."""
    if not math.isfinite(value) or dtype == "float64" or dtype not in FLOATS:
        return value
    try:
        if dtype == "bfloat16":
            (bits,) = struct.unpack("<I", struct.pack("<f", value))
            return float(struct.unpack("<f", struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0])
        code = "<e" if dtype == "float16" else "<f"
        return float(struct.unpack(code, struct.pack(code, value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def lost_epsilon(value: float, dtype: str) -> float | None:
    """The epsilon in a constant that was meant as a whole number plus a little, but which the format rounds to the whole number.

    `1e-8` in float16 is 0 and `0.99999999` in float32 is 1; the epsilons are 1e-8 and -1e-8.
    """
    held = rounded(value, dtype)
    if not math.isfinite(value) or held == value or held != round(held if math.isfinite(held) else 0.5):
        return None
    epsilon = value - held
    return epsilon if 0 < abs(epsilon) < 1e-3 else None
