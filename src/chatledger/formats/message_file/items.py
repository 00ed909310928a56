"""Items: messages and function calls. They grow by outputs and calls; nothing else of them changes.

The order of the fields is the order of the keys in `to_dict`. What grows is kept as tuples and set anew, so each
addition is validated and none can be made past the checks: nonces are unique in an item, call names in a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from chatledger.errors import NotFound
from chatledger.formats.message_file.outputs import TEXT, Output, as_output
from chatledger.formats.message_file.protocols import FunctionCall, MessageOutput
from chatledger.formats.message_file.values import FreeObject, History, Level, Name, Seconds, detached

DEEPEST_LEVEL = 5

FIXED = Field(frozen=True)


def _unique_nonces(outputs: tuple[Output, ...]) -> tuple[Output, ...]:
    _refuse_twice("nonce", (output.nonce for output in outputs))
    return outputs


def _refuse_twice(what: str, values: Iterator[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"the {what} {value!r} stands twice")
        seen.add(value)


class UnknownItem(NotFound, ValueError):
    """No message of this name is in the file."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no message {name!r} in the file")
        self.name = name


class Item(BaseModel):
    """What messages and function calls have in common."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    name: Annotated[Name | None, FIXED] = None
    timeout: Annotated[Seconds | None, FIXED] = None
    outputs: Annotated[tuple[Output, ...], AfterValidator(_unique_nonces)] = ()
    type: Annotated[str, FIXED]
    history: Annotated[History, FIXED] = Field(default_factory=list)
    heading_level: Annotated[Level | None, FIXED] = None

    def add_output(self, output: MessageOutput) -> None:
        """Append an output. Raises ValidationError if its nonce is in the item already."""
        self.outputs = (*self.outputs, as_output(output))

    def to_dict(self) -> dict[str, Any]:
        return {name: _dumped(getattr(self, name)) for name in type(self).model_fields}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The item of a dict that `to_dict` made. Raises ValidationError where it is none."""
        return cls.model_validate(dict(data))


def _dumped(value: Any) -> Any:
    return [child.to_dict() for child in value] if isinstance(value, tuple) else detached(value)


class CallItem(Item):
    """A call of a function, or of another agent by its name."""

    type: Annotated[Literal["function_call"], FIXED] = "function_call"
    function_name: Annotated[Name, FIXED]
    args: Annotated[FreeObject, FIXED] = Field(default_factory=dict)


def _unique_names(calls: tuple[CallItem, ...]) -> tuple[CallItem, ...]:
    _refuse_twice("name", (call.name for call in calls if call.name is not None))
    return calls


class TextItem(Item):
    """A message, with the agent that is to answer it and the calls that were made for it."""

    type: Annotated[Literal["message"], FIXED] = "message"
    content: Annotated[str, FIXED]
    mime_type: Annotated[Name, FIXED] = TEXT
    agent_name: Annotated[Name | None, FIXED] = None
    function_calls: Annotated[tuple[CallItem, ...], AfterValidator(_unique_names)] = ()

    @property
    def level_of_calls(self) -> int | None:
        return None if self.heading_level is None else min(self.heading_level + 1, DEEPEST_LEVEL)

    def add_function_call(
        self,
        function_name: str,
        args: Mapping[str, Any] | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> CallItem:
        """Append a call, one heading level below the message, and give it back: it grows in its place."""
        level = self.level_of_calls
        fields = {"name": name, "timeout": timeout, "heading_level": level, "function_name": function_name}
        return self._append({**fields, "args": dict(args or {})})

    def add_call(self, call: FunctionCall) -> CallItem:
        """Append a copy of a call that was built apart from the message, and give the copy back."""
        return self._append(call.to_dict())

    def _append(self, fields: dict[str, Any]) -> CallItem:
        named = {**fields, "name": fields["name"] or self._next_call_name()}
        call = CallItem.from_dict(named)
        self.function_calls = (*self.function_calls, call)
        return call

    def _next_call_name(self) -> str | None:
        """`{message}_func_{k}`, with the first k past the number of calls that is free; none in a nameless message."""
        if self.name is None:
            return None
        taken = {call.name for call in self.function_calls}
        numbers = count(len(self.function_calls) + 1)
        return next(name for k in numbers if (name := f"{self.name}_func_{k}") not in taken)


AnyItem: TypeAlias = Annotated[TextItem | CallItem, Field(discriminator="type")]
_ITEM: TypeAdapter[TextItem | CallItem] = TypeAdapter(AnyItem)


def item_from_dict(data: Mapping[str, Any]) -> TextItem | CallItem:
    """The message or function call of a dict, by its `type`. Raises ValidationError where it is neither."""
    return _ITEM.validate_python(dict(data))
