"""Characters that are not seen."""

from __future__ import annotations

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that steer a terminal, turn the direction of text, or show nothing."""


def visible(text: str) -> str:
    r"""Return ``text`` with every character that is not seen written as an escape.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _escaped(character) if unicodedata.category(character) in _HIDDEN else character
        for character in text
    )


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
