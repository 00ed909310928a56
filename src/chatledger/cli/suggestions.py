"""A group of commands that answers a wrong word with commands of a like name, and never with one that deletes."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from typer.core import TyperGroup

from chatledger.cli.removal import REMOVALS


class CommandGroup(TyperGroup):
    def resolve_command(self, ctx: Any, args: Any) -> Any:
        word = args[0]
        if not (word in self.commands or word.startswith("-") or ctx.resilient_parsing):
            harmless = [name for name in self.commands if name not in REMOVALS]
            ctx.fail(f"No such command {word!r}." + _like(word, harmless))
        return super().resolve_command(ctx, args)


def _like(word: str, names: Sequence[str]) -> str:
    found = get_close_matches(word, names)
    return f" Did you mean {', '.join(map(repr, found))}?" if found else ""
