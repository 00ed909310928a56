"""The names that a file gives to items: numbered, and never given twice."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(.*_)([1-9][0-9]{0,17})", re.DOTALL)


class Names:
    """The highest number that stood behind each beginning. It only grows, whatever becomes of the items."""

    def __init__(self) -> None:
        self._highest: dict[str, int] = {}

    def note(self, names: Iterable[str | None]) -> None:
        """Names that are in use, or were."""
        for name in names:
            numbered = None if name is None else _NUMBERED.fullmatch(name)
            if numbered is not None:
                beginning, number = numbered[1], int(numbered[2])
                self._highest[beginning] = max(number, self._highest.get(beginning, 0))

    def next_message(self) -> str:
        return self._next("message_")

    def next_call(self, message_name: str) -> str:
        return self._next(f"{message_name}_func_")

    def _next(self, beginning: str) -> str:
        name = f"{beginning}{self._highest.get(beginning, 0) + 1}"
        self.note([name])
        return name
