"""Qwen-Agent's classes, with the constructors, the dumps and the leniency of the real classes.

Reasoning, content and each call of a reply are separate consecutive assistant messages.

Qwen-Agent's documentation states stricter rules than the real package checks. Real conversations break these rules
(results without a name, calls with invalid arguments), so they are off by default: `check` returns the problems, and
`model_validate(data, context=DOCUMENTED)` raises ValidationError for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ValidationInfo, field_validator, model_validator

# The constants of the format: roles, kinds of content, names of fields.

ContentType: TypeAlias = Literal["text", "image", "file", "audio", "video"]

DEFAULT_SYSTEM_MESSAGE = ""

SYSTEM = "system"
USER = "user"
ASSISTANT = "assistant"
FUNCTION = "function"

TEXT: Final = "text"
IMAGE: Final = "image"
FILE: Final = "file"
AUDIO: Final = "audio"
VIDEO: Final = "video"

ROLE = "role"
CONTENT = "content"
REASONING_CONTENT = "reasoning_content"
NAME = "name"

ROLES = (USER, ASSISTANT, SYSTEM, FUNCTION)
CONTENT_TYPES: tuple[ContentType, ...] = (TEXT, IMAGE, FILE, AUDIO, VIDEO)
MESSAGE_FIELDS = (ROLE, CONTENT, REASONING_CONTENT, NAME, "function_call", "extra")
CALL_FIELDS = ("name", "arguments")
FUNCTION_ID = "function_id"  # the key of `extra` that holds a call's id, on the call and on its result


class UnknownField(AttributeError, KeyError):
    """There is no such field. Both a KeyError, as for `message[key]`, and an AttributeError, as in Qwen-Agent."""

    __str__ = AttributeError.__str__


# Dumps leave out None unless the caller asks for it. As in Qwen-Agent, `model[key] = value` does not validate:
# decoding the message checks the result.
class BaseModelCompatibleDict(BaseModel):
    def __getitem__(self, item: str) -> Any:
        try:
            return getattr(self, item)
        except AttributeError as error:
            raise UnknownField(str(error)) from None

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, value)

    def get(self, key: str, default: Any = None) -> Any:
        """The field's value; `default` if there is no such field or its value is falsy (None, `""`, `[]`, `{}`, 0)."""
        return getattr(self, key, None) or default

    def model_dump(self, **kwargs: Any) -> dict[str, Any]:
        return super().model_dump(**{"exclude_none": True, **kwargs})

    def model_dump_json(self, **kwargs: Any) -> str:
        return super().model_dump_json(**{"exclude_none": True, **kwargs})

    def __str__(self) -> str:
        return str(self.model_dump())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_dump()})"


DOCUMENTED: dict[str, str] = {"rules": "documented"}
"""The validation context of the stricter rules. It strips the name of a call, then refuses what `check` reports."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A value that the documentation does not allow, and its path in the message."""

    path: str
    detail: str


ContentValue: TypeAlias = str | dict[Any, Any] | list[Any]

EXCLUSIVE = "Exactly one of 'text', 'image', 'file', 'audio', or 'video' must be provided."


def given_types(fields: Mapping[str, Any]) -> list[ContentType]:
    """The kinds of content that count as given, in the order of the fields.

    A text counts if it is not None, even an empty one; any other kind counts if it is truthy. So `text="a"` with
    `image=""` is one piece of content, and `image=""` alone is none.
    """
    return [kind for kind in CONTENT_TYPES if (fields.get(kind) is not None if kind == TEXT else fields.get(kind))]


class ContentItem(BaseModelCompatibleDict):
    text: str | None = None
    image: str | None = None
    file: str | None = None
    audio: str | dict[Any, Any] | None = None
    video: str | list[Any] | None = None

    def __init__(
        self,
        text: str | None = None,
        image: str | None = None,
        file: str | None = None,
        audio: str | dict[Any, Any] | None = None,
        video: str | list[Any] | None = None,
    ) -> None:
        super().__init__(text=text, image=image, file=file, audio=audio, video=video)

    @model_validator(mode="after")
    def check_exclusivity(self) -> Self:
        if len(given_types(dict(self))) != 1:
            raise ValueError(EXCLUSIVE)
        return self

    def get_type_and_value(self) -> tuple[ContentType, ContentValue]:
        """The kind and its value; an empty text if an assignment emptied the item."""
        for kind in given_types(dict(self)):
            return kind, getattr(self, kind)
        return TEXT, ""

    @property
    def type(self) -> ContentType:
        return self.get_type_and_value()[0]

    @property
    def value(self) -> ContentValue:
        return self.get_type_and_value()[1]

    def is_media_content(self) -> bool:
        """Whether it is an image, an audio or a video. A file is not a medium, but makes a message multimodal."""
        return bool(self.image or self.audio or self.video)

    def get_file_extension(self) -> str | None:
        """The text after the last dot of an image or a file, in lower case; with the query of a URL."""
        kind, value = self.get_type_and_value()
        if kind in (IMAGE, FILE) and isinstance(value, str) and "." in value:
            return value.rpartition(".")[2].lower()
        return None


# Name and arguments stay verbatim: models do emit invalid JSON.
class FunctionCall(BaseModelCompatibleDict):
    name: str
    arguments: str

    def __init__(self, name: str, arguments: str) -> None:
        super().__init__(name=name, arguments=arguments)

    @model_validator(mode="after")
    def _as_documented(self, info: ValidationInfo) -> Self:
        if is_documented(info):
            self.name = self.name.strip()
            refuse(call_problems(self))
        return self

    def get_parsed_arguments(self) -> Any:
        """The parsed arguments, nearly always an object. Raises JSONDecodeError if they are not JSON."""
        return json.loads(self.arguments)

    def add_argument(self, key: str, value: Any) -> FunctionCall:
        """A new call with one more argument; this call does not change. Raises ValueError for arguments that are not an
        object.
        """
        arguments = self.get_parsed_arguments()
        if not isinstance(arguments, dict):
            raise ValueError(f"the arguments of {self.name} are not an object but {type(arguments).__name__}")
        return FunctionCall(self.name, json.dumps({**arguments, key: value}, ensure_ascii=False))


class Message(BaseModelCompatibleDict):
    role: str
    content: str | list[ContentItem]
    reasoning_content: str | list[ContentItem] | None = None
    name: str | None = None
    function_call: FunctionCall | None = None
    extra: dict[Any, Any] | None = None

    def __init__(
        self,
        role: str,
        content: str | list[ContentItem] | None,
        reasoning_content: str | list[ContentItem] | None = None,
        name: str | None = None,
        function_call: FunctionCall | None = None,
        extra: dict[Any, Any] | None = None,
        **_dropped: Any,
    ) -> None:
        super().__init__(
            role=role,
            content="" if content is None else content,
            reasoning_content=reasoning_content,
            name=name,
            function_call=function_call,
            extra=extra,
        )

    @field_validator("role")
    @classmethod
    def _known_role(cls, role: str) -> str:
        if role not in ROLES:
            raise ValueError(f"{role} must be one of {','.join(ROLES)}")
        return role

    @model_validator(mode="after")
    def _as_documented(self, info: ValidationInfo) -> Self:
        # The constructor validates the fields without the context, so this method checks the call as well.
        if is_documented(info):
            if self.function_call is not None:
                self.function_call.name = self.function_call.name.strip()
            refuse(check(self))
        return self

    def get_text_content(self) -> str:
        """The content if it is a text, otherwise its texts that are not empty, each on a line."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(item.text for item in self.content if item.text)

    def is_multimodal(self) -> bool:
        """Whether the content holds anything but text. A file counts."""
        if isinstance(self.content, str):
            return False
        return any(item.is_media_content() or item.file for item in self.content)


class ModelResponse(BaseModelCompatibleDict):
    messages: list[Message]
    usage: dict[Any, Any] | None = None
    model: str | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    created: int | None = None

    def get_content(self) -> str:
        """The text of the last message."""
        return self.messages[-1].get_text_content() if self.messages else ""

    def get_function_calls(self) -> list[FunctionCall]:
        return [message.function_call for message in self.messages if message.function_call]


class Usage(BaseModelCompatibleDict):
    """Tokens and their price. A sum counts a missing cost as 0, so two missing costs give 0.0."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            cost=(self.cost or 0.0) + (other.cost or 0.0),
        )


def check(message: Message) -> list[Problem]:
    """The problems of a message of this module or of the real package, in the order of its fields."""
    problems = list(_role_problems(message))
    for field in ("content", "reasoning_content"):
        problems += _item_problems(field, getattr(message, field))
    if message.function_call is not None:
        problems += call_problems(message.function_call, "function_call.")
    return problems


def call_problems(call: FunctionCall, prefix: str = "") -> list[Problem]:
    problems = []
    if not call.name.strip():
        problems.append(Problem(f"{prefix}name", "a function call needs a name"))
    elif call.name != call.name.strip():
        problems.append(Problem(f"{prefix}name", f"the name {call.name!r} has spaces around it"))
    if not _is_json(call.arguments):
        problems.append(Problem(f"{prefix}arguments", "the arguments are not JSON"))
    return problems


def is_documented(info: ValidationInfo) -> bool:
    return info.context is not None and info.context.get("rules") == DOCUMENTED["rules"]


def refuse(problems: Sequence[Problem]) -> None:
    """Raise ValueError if there is any problem. Pydantic turns it into a ValidationError."""
    if problems:
        raise ValueError("; ".join(f"{problem.path}: {problem.detail}" for problem in problems))


def _role_problems(message: Message) -> Iterator[Problem]:
    if message.role not in ROLES:
        yield Problem("role", f"unknown role {message.role!r}; known roles: {', '.join(ROLES)}")
    if message.role == FUNCTION and not message.name:
        yield Problem("name", "a function message needs the name of its function")


def _item_problems(field: str, items: Any) -> Iterator[Problem]:
    for index, item in enumerate(items if isinstance(items, list) else ()):
        kinds = [kind for kind in CONTENT_TYPES if getattr(item, kind) is not None]
        if len(kinds) != 1:
            yield Problem(f"{field}[{index}]", f"expected one kind of content, not {' and '.join(kinds) or 'none'}")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
