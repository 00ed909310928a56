"""What a wrong word is answered with: the new name of an old one, or else commands of a like name, but never one that
deletes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from typer.core import TyperCommand, TyperGroup

from chatledger.cli.databases.removal import REMOVALS

OLD_COMMANDS: Mapping[str, str] = {
    "history": "history is now 'prompt', for what the model is sent, and 'show --format', for what is stored",
    "partials": "partials is now 'drafts'",
    "redact": "redact THREAD SEQ is now 'erase-message THREAD ID'",
    "repair": "repair is now 'check --fix'; 'drafts --interrupt' interrupts abandoned drafts alone",
    "retain": "retain is now 'delete-inactive'",
    "feedback retract": "feedback retract is now 'feedback remove'",
}
"""The commands from before 0.1.0. Who types one may mean a removal, and is told its name."""
OLD_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "prompt": {
        "--last-turns": "--last-turns is now --turns",
        "--max-tokens": "--max-tokens is now --tokens",
        "--view": "--view is gone: 'prompt' prints what the model is sent, and 'show --format' what is stored",
    },
    "show": {
        "--last": "--last is gone: give --newest",
        "--user": "'show' shows the thread of any user, and 'threads --user' lists those of one",
    },
}
"""By command, the options that it lost, or that others have and it does not."""


class CommandGroup(TyperGroup):
    def resolve_command(self, ctx: Any, args: Any) -> Any:
        word = args[0]
        if not (word in self.commands or word.startswith("-") or ctx.resilient_parsing):
            old = OLD_COMMANDS.get(f"{_words(ctx)} {word}".strip())
            harmless = [name for name in self.commands if name not in REMOVALS]
            ctx.fail(f"No such command {word!r}." + (f" {old}." if old else _like(word, harmless)))
        return super().resolve_command(ctx, args)


class Command(TyperCommand):
    def parse_args(self, ctx: Any, args: Any) -> Any:
        old = OLD_OPTIONS.get(_words(ctx), {})
        for word in args if old and not ctx.resilient_parsing else ():
            name = word.partition("=")[0]
            if name in old:
                ctx.fail(f"No such option: {name}. {old[name]}.")
        return super().parse_args(ctx, args)


def _words(ctx: Any) -> str:
    """The words of the command, without the program's name."""
    return str(ctx.command_path).partition(" ")[2]


def _like(word: str, names: Sequence[str]) -> str:
    alike = get_close_matches(word, names)
    return f" Did you mean {', '.join(map(repr, alike))}?" if alike else ""
