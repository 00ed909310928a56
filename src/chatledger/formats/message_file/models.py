"""Items, which are messages and function calls, and their outputs.

Values are checked when an object is built and never converted. A dict comes back equal: a number given as text is
rejected rather than read as a number, and 1 second does not become 1.0. Free JSON is copied on input and output, so the
caller and the object never share it.

The order of an item's fields is the order of the keys in `to_dict`. Only the outputs and calls of an item change, by
addition. They are tuples that each addition replaces, so that it is validated: nonces are unique in an item, call names
in a message. Outputs never change, so an output may be part of several items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Annotated, Any, Literal, Self, TypeAlias
from uuid import uuid4

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    model_validator,
)

from chatledger.errors import NotFound
from chatledger.formats.message_file.protocols import FunctionCall, MessageOutput
from chatledger.models.base import Model
from chatledger.models.json import JsonObject, JsonValue, dumps, loads


def detached(value: JsonValue) -> JsonValue:
    """An equal value that shares nothing with this one."""
    return loads(dumps(value)) if isinstance(value, (dict, list)) else value


def _listed(value: Any) -> Any:
    """Refuses all but a list. Pydantic would also read a generator, which may have no end."""
    if not isinstance(value, (list, tuple)):
        raise ValueError("must be a list")
    return value


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    return text


Name = Annotated[str, AfterValidator(_not_empty)]
"""A text that is not empty. Pydantic's `min_length` would refuse a lone surrogate, which a person's name may hold."""
Level = Annotated[int, Field(strict=True, ge=1, le=5)]
Count = Annotated[int, Field(strict=True, ge=1)]
Flag = Annotated[bool, Field(strict=True)]
Whole = Annotated[int, Field(strict=True)]
Number = Whole | Annotated[float, Field(strict=True, allow_inf_nan=False)]
Seconds = Annotated[int, Field(strict=True, ge=0)] | Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
FreeObject = Annotated[JsonObject, AfterValidator(detached)]

HistoryMode = Literal["none", "include", "summary"]
HistoryEntries = Annotated[list[JsonObject], BeforeValidator(_listed), AfterValidator(detached)]
History = HistoryEntries | HistoryMode

TEXT = "text/plain"

DEEPEST_LEVEL = 5


def new_nonce() -> str:
    return str(uuid4())


Nonce = Annotated[Name, BeforeValidator(lambda nonce: new_nonce() if nonce is None else nonce)]
"""The key of an output among those of its item; None asks for a new one."""


class PlainOutput(Model):
    """A text, or other content in base64, with its mime type."""

    content: str
    mime_type: Name = TEXT
    nonce: Nonce = Field(default_factory=new_nonce)

    def to_dict(self) -> dict[str, Any]:
        return {"content": self.content, "mime_type": self.mime_type, "nonce": self.nonce}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls.model_validate(dict(data))


class CodeOutput(Model):
    """The two streams that a program wrote. `status` is its exit code or a word, `duration` is in seconds.

    The content is derived from the streams, since it does not keep the line endings.
    """

    mime_type: Name = TEXT
    nonce: Nonce = Field(default_factory=new_nonce)
    stdout_content: str = Field(default="", alias="stdout")
    stderr_content: str = Field(default="", alias="stderr")
    status: Whole | str = 0
    duration: Seconds = 0.0
    lang: str = "python"

    @model_validator(mode="before")
    @classmethod
    def _derive_the_content(cls, data: Any) -> Any:
        return {key: value for key, value in data.items() if key != "content"} if isinstance(data, dict) else data

    @property
    def content(self) -> str:
        """Both streams line by line, each line with the name of its stream before it."""
        streams = (("stdout", self.stdout_content), ("stderr", self.stderr_content))
        return "\n".join(f"{stream}> {line}" for stream, written in streams for line in written.splitlines())

    def to_dict(self) -> dict[str, Any]:
        return {
            "content": self.content,
            "mime_type": self.mime_type,
            "nonce": self.nonce,
            "stdout": self.stdout_content,
            "stderr": self.stderr_content,
            "status": self.status,
            "duration": self.duration,
            "lang": self.lang,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls.model_validate(dict(data))


def _kind_of(value: Any) -> str:
    streams = isinstance(value, dict) and not value.keys().isdisjoint({"stdout", "stderr"})
    return "code" if streams or isinstance(value, CodeOutput) else "plain"


Output: TypeAlias = Annotated[
    Annotated[CodeOutput, Tag("code")] | Annotated[PlainOutput, Tag("plain")], Discriminator(_kind_of)
]
_OUTPUT: TypeAdapter[CodeOutput | PlainOutput] = TypeAdapter(Output)


def output_from_dict(data: Mapping[str, Any]) -> CodeOutput | PlainOutput:
    """The output of a dict: a CodeOutput if it has a stream. Raises ValidationError for a dict of no output."""
    return _OUTPUT.validate_python(dict(data))


def as_output(output: MessageOutput) -> CodeOutput | PlainOutput:
    """One of our outputs, equal to the given one, which may be of any class."""
    return output if isinstance(output, (CodeOutput, PlainOutput)) else output_from_dict(output.to_dict())


FIXED = Field(frozen=True)


def _unique_nonces(outputs: tuple[Output, ...]) -> tuple[Output, ...]:
    _refuse_twice("nonce", (output.nonce for output in outputs))
    return outputs


def _refuse_twice(what: str, values: Iterator[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise ValueError(f"duplicate {what} {value!r}")
        seen.add(value)


class UnknownItem(NotFound, ValueError):
    """No message of this name is in the file."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the file has no message {name!r}")
        self.name = name


class Item(BaseModel):
    """The fields that messages and function calls have in common."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    name: Annotated[Name | None, FIXED] = None
    timeout: Annotated[Seconds | None, FIXED] = None
    outputs: Annotated[tuple[Output, ...], BeforeValidator(_listed), AfterValidator(_unique_nonces)] = ()
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
        """The item of a dict that `to_dict` made. Raises ValidationError for any other dict."""
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
    function_calls: Annotated[tuple[CallItem, ...], BeforeValidator(_listed), AfterValidator(_unique_names)] = ()

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
        """Append a call, one heading level below the message, and return it. Outputs added to it are part of the
        message.
        """
        level = self.level_of_calls
        fields = {"name": name, "timeout": timeout, "heading_level": level, "function_name": function_name}
        return self._append({**fields, "args": dict(args or {})})

    def add_call(self, call: FunctionCall) -> CallItem:
        """Append a copy of a call that was built apart from the message, and return the copy."""
        return self._append(call.to_dict())

    def _append(self, fields: dict[str, Any]) -> CallItem:
        named = {**fields, "name": fields["name"] or self._next_call_name()}
        call = CallItem.from_dict(named)
        self.function_calls = (*self.function_calls, call)
        return call

    def _next_call_name(self) -> str | None:
        """`{message}_func_{k}` with the first free k above the number of calls; None if the message has no name."""
        if self.name is None:
            return None
        taken = {call.name for call in self.function_calls}
        numbers = count(len(self.function_calls) + 1)
        return next(name for k in numbers if (name := f"{self.name}_func_{k}") not in taken)


ITEM_TYPES = frozenset({"message", "function_call"})

AnyItem: TypeAlias = Annotated[TextItem | CallItem, Field(discriminator="type")]
_ITEM: TypeAdapter[TextItem | CallItem] = TypeAdapter(AnyItem)


def item_from_dict(data: Mapping[str, Any]) -> TextItem | CallItem:
    """The message or function call of a dict, by its `type`. Raises ValidationError for any other dict."""
    return _ITEM.validate_python(dict(data))
