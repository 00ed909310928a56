"""Escapes stored text, so that it cannot move the cursor, change a colour or change the direction of writing.

A character that controls a terminal is printed as an escape, for example ESC as \\x1b.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 apart from tab and line feed, DEL, C1
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # direction, invisible, other line ends
    "\ud800-\udfff"  # lone surrogates: no encoding of a terminal has them
    "\U000e0000-\U000e007f]"  # tags: invisible text
)
_BREAKS = re.compile("[\t\n]")


def escape(text: str) -> str:
    """Escape every character that controls a terminal, except line ends. A tab becomes four spaces."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n")).replace("\t", "    ")


def one_line(text: str) -> str:
    """Escape line ends and tabs as well: for names, ids and errors."""
    return _UNSAFE.sub(_escaped, _BREAKS.sub(_escaped, text))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if match[0] in "\t\n\r":
        return {"\t": "\\t", "\n": "\\n", "\r": "\\r"}[match[0]]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
