"""The commands of docs/reference/command-line.md, made of the Typer application when the site is built."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from chatledger.cli.app import app

SHARED = ("--url", "--tenant", "--json", "--debug")
_KINDS = (("<int range>", "N"), ("<int>", "N"), ("<float>", "NUMBER"), ("<str>", "TEXT"), ("<path>", "PATH"))


def commands() -> Iterator[tuple[str, Any, Any]]:
    """The words, the command and its context of each command, in the order of their words."""
    root: Any = typer.main.get_command(app)
    top = root.make_context("chatledger", ["formats"], resilient_parsing=True)
    yield from sorted(_below(root, top, ""), key=lambda found: str(found[0]))


def _below(group: Any, context: Any, words: str) -> Iterator[tuple[str, Any, Any]]:
    for name, command in group.commands.items():
        inner = type(context)(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from _below(command, inner, f"{words}{name} ")
        else:
            yield f"{words}{name}", command, inner


def described() -> str:
    return "\n\n".join(_command(*found) for found in commands())


def shared() -> str:
    _, command, context = next(found for found in commands() if found[0] == "threads")
    root = context.parent.command
    items = [_item(one, context) for one in command.get_params(context) if one.opts[0] in SHARED]
    before = [
        _item(one, context.parent) for one in root.get_params(context.parent) if one.opts[0] in ("--keys", "--version")
    ]
    return "\n".join([*items, *before])


def _command(words: str, command: Any, context: Any) -> str:
    paragraphs = [" ".join(one.split()) for one in inspect.cleandoc(command.help).split("\n\n")]
    params = command.get_params(context)
    own = [_item(one, context) for one in params if one.name != "help" and one.opts[0] not in SHARED]
    taken = {one.opts[0] for one in params}
    refused = [f"`{option}`" for option in SHARED if option not in taken]
    parts = [
        f"### {words}",
        *map(_paragraph, paragraphs),
        *(["\n".join(own)] if own else []),
        *([f"Takes no {', '.join(refused)}."] if refused else []),
    ]
    return "\n\n".join(parts)


def _paragraph(text: str) -> str:
    said, example, command = text.partition("Example: ")
    return f"{example}`{command}`" if example and not said else _marked(text)


def _item(param: Any, context: Any) -> str:
    name, text = param.get_help_record(context)
    for kind, word in _KINDS:
        name = name.replace(kind, word)
    name = re.sub(r"<([^>]*)>", r"\1", name) if param.param_type_name == "option" else name.partition(" ")[0]
    return f"- `{name}`: {_marked(_spelled_out(text))}"


def _spelled_out(text: str) -> str:
    """A help text with the facts that Typer adds in brackets as sentences."""
    said, _, facts = text.partition("  [")
    sentences = [said.rstrip()]
    for fact in facts.removesuffix("]").split("; "):
        match fact.partition(": "):
            case "default", _, value:
                said = value[1:-1] if value.startswith("(") else f"`{value}`"
                sentences.append(f"Default: {said}.")
            case "required", *_:
                sentences.append("Required.")
            case bound, "", "" if bound:
                sentences.append(_bounds(bound))
    return " ".join(sentences)


def _bounds(bound: str) -> str:
    """Bounds such as `1<=x<=1000` or `x>=0`, as a sentence."""
    if between := re.fullmatch(r"(.*)<=x<=(.*)", bound):
        return f"{between[1]} to {between[2]}."
    return f"{bound.replace('x>=', 'At least ').replace('x<=', 'At most ')}."


def _marked(text: str) -> str:
    """The text with its options and JSON as code."""
    pieces = text.split("`")
    options = re.compile(r"(?<![\w-])(--?[a-z][\w-]*(?: (?:base|model))?|\{\"messages\": \[…\]\})")
    return "`".join(piece if number % 2 else options.sub(r"`\1`", piece) for number, piece in enumerate(pieces))


TABLES = {"shared": shared, "commands": described}
