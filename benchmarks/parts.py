"""Pages of which a command writes a part and people the rest.

<!-- begin NAME: make TARGET -->
what the command writes
<!-- end NAME -->
"""

from __future__ import annotations

import re
from pathlib import Path


def read_part(page: Path, name: str) -> str:
    """What stands there. Raises ValueError if the page has no such part."""
    return _find(page.read_text(encoding="utf-8"), name, page)[2]


def write_part(page: Path, name: str, text: str) -> None:
    whole = page.read_text(encoding="utf-8")
    found = _find(whole, name, page)
    page.write_text(f"{whole[: found.start(2)]}\n{text.strip()}\n\n{whole[found.end(2) :]}", encoding="utf-8")


def _find(text: str, name: str, page: Path) -> re.Match[str]:
    found = re.search(rf"(<!-- begin {name}\b[^\n]*-->\n)(.*?)(<!-- end {name} -->)", text, re.DOTALL)
    if found is None:
        raise ValueError(f"{page.name} has no part {name!r}: a line <!-- begin {name}: … --> and <!-- end {name} -->")
    return found
