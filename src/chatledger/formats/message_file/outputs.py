"""Outputs: what an item produced. They never change, so one may be part of several items.

What a program wrote is stored as its two streams. The content shown of them is derived, since the lines that it is
made of have lost how they ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeAlias
from uuid import uuid4

from pydantic import BeforeValidator, Discriminator, Field, Tag, TypeAdapter, model_validator

from chatledger.formats.message_file.protocols import MessageOutput
from chatledger.formats.message_file.values import Name, Seconds, Whole
from chatledger.models.base import Model

TEXT = "text/plain"


def new_nonce() -> str:
    return str(uuid4())


Nonce = Annotated[Name, BeforeValidator(lambda nonce: new_nonce() if nonce is None else nonce)]
"""What tells an output from the others of its item; None asks for a new one."""


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
    """What a program wrote to its two streams. `status` is its exit code or a word, `duration` in seconds."""

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
    """The output of a dict: a program's where it has a stream. Raises ValidationError where it is neither."""
    return _OUTPUT.validate_python(dict(data))


def as_output(output: MessageOutput) -> CodeOutput | PlainOutput:
    """One of our outputs, equal to what is given; anyone's may be."""
    return output if isinstance(output, (CodeOutput, PlainOutput)) else output_from_dict(output.to_dict())
