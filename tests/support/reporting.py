"""What the tests of reports share: numbers as the page's script unpacks them, written a second time from the format."""

from __future__ import annotations

import base64


def unpacked(text: str, *, rising: bool = False) -> list[int]:
    """Seven bits a byte, the least first; the last bit of a number is its sign."""
    numbers: list[int] = []
    code = shift = last = 0
    for byte in base64.b64decode(text):
        code |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            value = (code >> 1) ^ -(code & 1)
            last = last + value if rising else value
            numbers.append(last)
            code = shift = 0
    return numbers
