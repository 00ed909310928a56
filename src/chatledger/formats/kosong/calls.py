"""Tool calls of kosong, and the fragments in which their arguments arrive. Fragments are never stored alone."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, JsonValue

from chatledger.formats.kosong.parts import MergeableMixin


class ToolCallPart(BaseModel, MergeableMixin):
    arguments_part: str | None = None

    def merge_in_place(self, other: object) -> bool:
        if not isinstance(other, ToolCallPart):
            return False
        self.arguments_part = _joined(self.arguments_part, other.arguments_part)
        return True


class AnyToolCall(BaseModel, MergeableMixin):
    """What the tool calls of both revisions have."""

    class FunctionBody(BaseModel):
        """`arguments` is JSON as the model wrote it, which may be broken, or None while none arrived."""

        name: str
        arguments: str | None

    type: Literal["function"] = "function"
    id: str
    function: FunctionBody

    def merge_in_place(self, other: object) -> bool:
        if not isinstance(other, ToolCallPart):
            return False
        self.function.arguments = _joined(self.function.arguments, other.arguments_part)
        return True


class ToolCall(AnyToolCall):
    """A call with what its provider wants back beside it, such as a signature."""

    extras: dict[str, JsonValue] | None = None


def _joined(text: str | None, fragment: str | None) -> str | None:
    return fragment if text is None else text + (fragment or "")
