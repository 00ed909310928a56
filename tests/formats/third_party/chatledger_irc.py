"""The log of an IRC channel: ["<ada> How cold is Oslo?", "<*bot> Three below."]. A star marks the model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chatledger import ChatMessage
from chatledger.errors import DecodeError
from chatledger.formats import Codec, Decoded, Written

_LINE = re.compile(r"<(\*?)([^<>*\n]{1,60})> ([^\n]*)")


class Irc(Codec):
    """Each line is a message. What is no line of its own stays out, which shows in the losses."""

    name = "irc"

    def recognises(self, payload: object) -> bool:
        return (
            isinstance(payload, list)
            and bool(payload)
            and all(isinstance(one, str) and _LINE.fullmatch(one) for one in payload)
        )

    def decode(self, payload: object, *, rules: str = "strict") -> Decoded:
        if not isinstance(payload, list):
            raise DecodeError("", "expected a list of lines")
        return Decoded([_read(line, f"[{index}]") for index, line in enumerate(payload)])

    def encode(self, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written:
        said = [(index, _write(message)) for index, message in enumerate(messages)]
        lines = [(index, line) for index, line in said if line is not None]
        own = [index for index, _ in lines if messages[index].format == self.name]
        return Written([line for _, line in lines], [(index,) for index, _ in lines], own)


def _is_line(one: object) -> bool:
    return isinstance(one, str) and _LINE.fullmatch(one) is not None


def _read(line: object, path: str) -> ChatMessage:
    found = _LINE.fullmatch(line) if isinstance(line, str) else None
    if found is None:
        raise DecodeError(path, "expected a line such as '<ada> Hello'")
    role = "assistant" if found[1] else "user"
    return ChatMessage(role=role, name=found[2], content=found[3], format="irc")


def _write(message: ChatMessage) -> str | None:
    line = f"<{'*' if message.role == 'assistant' else ''}{message.name or message.role}> {message.text or ''}"
    return line if message.role in ("user", "assistant") and _LINE.fullmatch(line) else None


CODEC = Irc()
