"""Stored text on a terminal: nothing in it moves the cursor, changes a colour or turns the direction of writing.

What could is shown as its escape, so that it can be seen instead of obeyed.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 apart from tab and line feed, DEL, C1
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # direction, invisible, other line ends
    "\ud800-\udfff"  # lone surrogates: no terminal's encoding has them
    "\U000e0000-\U000e007f]"  # tags: text that nobody sees
)
_BREAKS = re.compile("[\t\n]")


def escape(text: str) -> str:
    """The text with line ends and tabs, and everything else that a terminal would obey as an escape."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n")).replace("\t", "    ")


def one_line(text: str) -> str:
    """The same on a single line, for names, ids and errors."""
    return _UNSAFE.sub(_escaped, _BREAKS.sub(_escaped, text))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if match[0] in "\t\n\r":
        return {"\t": "\\t", "\n": "\\n", "\r": "\\r"}[match[0]]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
