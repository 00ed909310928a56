"""Builders of the contents of a message file. Each `with_*` method returns the builder.

`build` validates, raising Pydantic's ValidationError, and may be called again. The object that it returns shares
nothing with the builder, with the arguments of the builder, or with an object that it built before.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Self

from chatledger.formats.message_file.models import CallItem, CodeOutput, PlainOutput, TextItem, as_output
from chatledger.formats.message_file.protocols import FunctionCall, MessageOutput


class _Builder:
    """The fields given so far. `build` gives all other fields their defaults."""

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
        """Content that is not text: its bytes in base64, with their mime type."""
        return self._with(content=b64encode(data).decode("ascii"), mime_type=mime_type)


class _ItemBuilder(_Builder):
    def with_name(self, name: str | None) -> Self:
        return self._with(name=name)

    def with_timeout(self, timeout: float | None) -> Self:
        return self._with(timeout=timeout)

    def with_output(self, output: MessageOutput) -> Self:
        """Add an output."""
        return self._with(outputs=(*self._fields.get("outputs", ()), as_output(output)))

    def with_history(self, history: Sequence[Mapping[str, Any]] | str) -> Self:
        """The entries of a history, or its mode: none, include or summary."""
        return self._with(history=history if isinstance(history, str) else [dict(entry) for entry in history])

    def with_heading_level(self, heading_level: int | None) -> Self:
        return self._with(heading_level=heading_level)


class MessageOutputBuilder(_ContentBuilder):
    """Builds a MessageOutput. Without a nonce, each built output gets its own."""

    def with_nonce(self, nonce: str | None) -> Self:
        return self._with(nonce=nonce)

    def build(self) -> PlainOutput:
        return PlainOutput.from_dict(self._fields)


class CodeExecutionOutputBuilder(_Builder):
    """Builds a CodeExecutionOutput. Its content is derived from its two streams."""

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
    """Builds a Message. A call without a name gets one that is made of the message's."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[FunctionCall] = []

    def with_agent_name(self, agent_name: str | None) -> Self:
        return self._with(agent_name=agent_name)

    def with_function_call(self, call: FunctionCall) -> Self:
        """Add a call, which `build` copies."""
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
