"""Builders: the way to make what a message file holds. Each `with_*` gives the builder back.

`build` validates, raising Pydantic's ValidationError, and may be called again: what it gives shares nothing with the
builder, with what was handed to it, or with what it built before.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Self

from chatledger.formats.message_file.items import CallItem, TextItem
from chatledger.formats.message_file.outputs import CodeOutput, PlainOutput, as_output
from chatledger.formats.message_file.protocols import FunctionCall, MessageOutput


class _Builder:
    """The fields given so far; one that was not given takes its default when the object is built."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}

    def _with(self, **fields: Any) -> Self:
        self._fields.update(fields)
        return self


class _ContentBuilder(_Builder):
    def with_content(self, content: str) -> Self:
        return self._with(content=content)

    def with_mime_type(self, mime_type: str) -> Self:
        return self._with(mime_type=mime_type)

    def with_binary_content(self, data: bytes, mime_type: str) -> Self:
        """Content that is not text: its bytes in base64, with the type that says how to read them."""
        return self._with(content=b64encode(data).decode("ascii"), mime_type=mime_type)


class _ItemBuilder(_Builder):
    def with_name(self, name: str | None) -> Self:
        return self._with(name=name)

    def with_timeout(self, timeout: float | None) -> Self:
        return self._with(timeout=timeout)

    def with_output(self, output: MessageOutput) -> Self:
        """One output more."""
        return self._with(outputs=(*self._fields.get("outputs", ()), as_output(output)))

    def with_history(self, history: Sequence[Mapping[str, Any]] | str) -> Self:
        """The entries of a history, or its mode: none, include or summary."""
        return self._with(history=history if isinstance(history, str) else [dict(entry) for entry in history])

    def with_heading_level(self, heading_level: int | None) -> Self:
        return self._with(heading_level=heading_level)


class MessageOutputBuilder(_ContentBuilder):
    """Builds a MessageOutput. Without a nonce, each one built gets its own."""

    def with_nonce(self, nonce: str | None) -> Self:
        return self._with(nonce=nonce)

    def build(self) -> PlainOutput:
        return PlainOutput.from_dict(self._fields)


class CodeExecutionOutputBuilder(_Builder):
    """Builds a CodeExecutionOutput, whose content follows from its two streams."""

    def with_stdout(self, stdout: str) -> Self:
        return self._with(stdout=stdout)

    def with_stderr(self, stderr: str) -> Self:
        return self._with(stderr=stderr)

    def with_status(self, status: int | str) -> Self:
        return self._with(status=status)

    def with_duration(self, duration: float) -> Self:
        return self._with(duration=duration)

    def with_lang(self, lang: str) -> Self:
        return self._with(lang=lang)

    def build(self) -> CodeOutput:
        return CodeOutput.from_dict(self._fields)


class MessageBuilder(_ContentBuilder, _ItemBuilder):
    """Builds a Message. Calls without a name get one from the message's."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[FunctionCall] = []

    def with_agent_name(self, agent_name: str | None) -> Self:
        return self._with(agent_name=agent_name)

    def with_function_call(self, call: FunctionCall) -> Self:
        """One call more, as it is when the message is built."""
        self._calls.append(call)
        return self

    def build(self) -> TextItem:
        message = TextItem.from_dict(self._fields)
        for call in self._calls:
            message.add_call(call)
        return message


class FunctionCallBuilder(_ItemBuilder):
    """Builds a FunctionCall."""

    def with_function_name(self, function_name: str) -> Self:
        return self._with(function_name=function_name)

    def with_args(self, args: Mapping[str, Any]) -> Self:
        return self._with(args=dict(args))

    def build(self) -> CallItem:
        return CallItem.from_dict(self._fields)
