"""A payload as messages: an event is one row, with one more row for each further result.

The rows of an event are a group: all but the first are marked as continuing the row before, and the first holds the
head of the event. An event without content, such as a change of state, is a custom message.

The id, the time and the invocation of an event stay in the head. The ledger assigns its own, which a caller may set to
the same values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.google_adk.parts import (
    AS_JSON,
    CALLS,
    CALLS_AT,
    CAMEL,
    HEAD,
    METADATA,
    MODEL,
    NAME,
    OUTPUT,
    PARTS,
    RESPONSE,
    REST_AT,
    RESULT,
    USER,
    Source,
    is_metadata,
    kind_of,
    opaque,
    read_part,
    signer_of_model,
    spelled,
    view,
)
from chatledger.formats.google_adk.write import encoded_call, encoded_head, encoded_result
from chatledger.formats.wire.fields import as_object, nameless, object_at, optional_text_at, wrong
from chatledger.formats.wire.parts import by_index, text_alone
from chatledger.formats.wire.plain import dumped, require_json
from chatledger.formats.wire.residual import FORM, keep_deep, positions_of
from chatledger.models import CONTINUES, LENIENT, ChatMessage, Part, TextPart, ToolCall
from chatledger.models.json import JsonValue, dumps

_ASSIGNED: Any = dict.fromkeys(("invocation_id", "id", "timestamp"), object())
"""A value that the ledger assigns to every message: equal to nothing, so that the residual keeps the event's value."""
CALL = "function_call"
ANSWER = "function_response"


def is_object(value: object) -> bool:
    """Whether the value is an Event of ADK, or of a class that inherits from it."""
    return any(cls.__name__ == "Event" and cls.__module__ == "google.adk.events.event" for cls in type(value).__mro__)


def read_payload(payload: object, *, lenient: bool) -> list[ChatMessage]:
    """The rows of the events. Raises DecodeError with the path of the first invalid value."""
    if not isinstance(payload, (list, tuple)):
        raise DecodeError("$", f"expected a list of events, not {type(payload).__name__}")
    rows: list[ChatMessage] = []
    for index, event in enumerate(payload):
        path = f"$[{index}]"
        source = plain(event, path)
        require_json(source, path)
        rows += read_event(as_object(source, path), path, lenient=lenient)
    return rows


def plain(event: object, path: str) -> Any:
    """The event in the JSON form of ADK's own stores."""
    if not is_object(event):
        return event
    return dumped(event, path, lambda model_dump: model_dump(mode="json", exclude_none=True))


def read_event(source: Source, path: str, *, lenient: bool) -> list[ChatMessage]:
    """The rows of an event, at least one."""
    camel = _is_camel(source)
    known = view(source, camel)
    reader = _Reader(source, known, path, camel, lenient)
    content = known.get("content")
    try:
        if content is None:
            parts = None
        else:
            inner = as_object(content, f"{path}.content")
            parts = inner.get("parts")
            if parts is not None and not isinstance(parts, list):
                raise wrong(f"{path}.content.parts", "a list", parts)
            optional_text_at(inner, "role", f"{path}.content")
    except DecodeError:
        if not lenient:
            raise
        parts = None
    if not parts:
        return [reader.row("custom", [], {}, has_parts=False)]
    return reader.rows(parts)


def _is_camel(source: Source) -> bool:
    """Whether the keys of the event, or else those of its parts, are spelled like `functionCall`."""
    if any(key != key.lower() for key in source):
        return True
    if any("_" in key for key in source):
        return False
    content = source.get("content")
    parts = content.get("parts") if isinstance(content, dict) else None
    of_parts = (part for part in parts if isinstance(part, dict)) if isinstance(parts, list) else ()
    return any(key != key.lower() for part in of_parts for key in part)


class _Reader:
    """Reads one event."""

    def __init__(self, source: Source, known: Mapping[str, JsonValue], path: str, camel: bool, lenient: bool) -> None:
        self._source = source
        self._known = known
        self._path = path
        self._camel = camel
        self._lenient = lenient
        metadata = {key: known[key] for key in METADATA if key in known and is_metadata(key, known[key])}
        self._metadata: Source | None = metadata or None
        self._signer = signer_of_model(known.get("model_version"))

    def rows(self, parts: list[JsonValue]) -> list[ChatMessage]:
        kinds = [kind_of(part, self._camel) for part in parts]
        if ANSWER in kinds and CALL not in kinds:
            rows = self._result_rows(parts, kinds)
            if rows:
                return rows
        return [self._plain_row(parts)]

    def row(
        self,
        role: str,
        content: list[Part],
        sections: Source,
        *,
        calls: list[ToolCall] | None = None,
        has_parts: bool = True,
        **fields: Any,
    ) -> ChatMessage:
        """The first row of the event, with its head."""
        author = self._known.get("author")
        name = author if isinstance(author, str) and author != (MODEL if role == "assistant" else USER) else None
        message = ChatMessage.model_validate(
            {
                "role": role,
                "content": text_alone(content),
                "tool_calls": calls or None,
                "name": name or None,
                "response_metadata": self._metadata,
                "format": NAME,
                **fields,
            },
            context=LENIENT,
        )
        source = self._source
        if has_parts:
            inner = source["content"]
            assert isinstance(inner, dict)
            source = {**source, "content": {**inner, "parts": None}}
        encoded = encoded_head(message, camel=self._camel, has_parts=has_parts)
        head = keep_deep(source, {**encoded, **spelled(_ASSIGNED, self._camel)})
        form: Source = {FORM: CAMEL} if self._camel else {}
        return _with_residual(message, {**form, HEAD: head, **sections})

    def _plain_row(self, parts: list[JsonValue]) -> ChatMessage:
        calls: dict[int, ToolCall] = {}
        rest: dict[int, JsonValue] = {}
        of_calls: Source = {}
        for at, value in enumerate(parts):
            call = self._read_call(value, self._at(at))
            if call is None:
                rest[at] = value
                continue
            assert isinstance(value, dict)
            residual = keep_deep(value, encoded_call(call, camel=self._camel))
            of_calls |= {str(len(calls)): residual} if residual else {}
            calls[at] = call
        content, of_parts = self._read_rest(rest)
        positions: Any = positions_of(list(calls), len(parts)) if calls else None
        sections: Source = {PARTS: of_parts, CALLS: of_calls, CALLS_AT: positions}
        return self.row("assistant" if calls else self._role(), content, sections, calls=list(calls.values()))

    def _result_rows(self, parts: list[JsonValue], kinds: Sequence[str | None]) -> list[ChatMessage]:
        """A row for each result, then one for the parts around them; none if no result can be read."""
        rows: list[ChatMessage] = []
        rest: dict[int, JsonValue] = {}
        for at, (value, kind) in enumerate(zip(parts, kinds, strict=True)):
            result = self._read_result(value, self._at(at)) if kind == ANSWER else None
            if result is None:
                rest[at] = value
                continue
            content, fields, sections = result
            if not rows:
                rows.append(self.row("tool", content, sections, **fields))
            else:
                rows.append(self._next_row("tool", content, sections, **fields))
        if rows and rest:
            content, of_parts = self._read_rest(rest)
            positions: Any = positions_of(list(rest), len(parts))
            role = "assistant" if self._role() == "assistant" else USER
            rows.append(self._next_row(role, content, {PARTS: of_parts, REST_AT: positions}))
        return rows

    def _next_row(self, role: str, content: list[Part], sections: Source, **fields: Any) -> ChatMessage:
        form: Source = {FORM: CAMEL} if self._camel else {}
        message = ChatMessage.model_validate(
            {
                "role": role,
                "content": text_alone(content),
                "format": NAME,
                **fields,
            },
            context=LENIENT,
        )
        return _with_residual(message, {CONTINUES: True, **form, **sections})

    def _role(self) -> str:
        content = self._known["content"]
        assert isinstance(content, dict)
        role = content.get("role")
        if role is None:
            return USER if self._known.get("author") == USER else "assistant"
        return {MODEL: "assistant", USER: USER}.get(role, "custom") if isinstance(role, str) else "custom"

    def _read_rest(self, parts: Mapping[int, JsonValue]) -> tuple[list[Part], Source]:
        options: Any = {"camel": self._camel, "signer": self._signer, "lenient": self._lenient}
        return by_index(read_part(value, self._at(at), **options) for at, value in parts.items())

    def _read_call(self, value: JsonValue, path: str) -> ToolCall | None:
        """A call; None for every other part, and for a malformed call if lenient."""
        if kind_of(value, self._camel) != CALL:
            return None
        try:
            function_call = object_at(dict(view(as_object(value, path), self._camel)), CALL, path)
            path = f"{path}.{CALL}"
            arguments = None if function_call.get("args") is None else object_at(function_call, "args", path)
            name = optional_text_at(function_call, "name", path)
            if not name:
                raise nameless(path)
            return ToolCall(id=optional_text_at(function_call, "id", path), name=name, arguments=arguments)
        except DecodeError:
            if not self._lenient:
                raise
        return None

    def _read_result(self, value: JsonValue, path: str) -> tuple[list[Part], dict[str, Any], Source] | None:
        """The content, fields and residual of a result; None for a malformed result if lenient."""
        try:
            source = as_object(value, path)
            function_response = object_at(dict(view(source, self._camel)), ANSWER, path)
            path = f"{path}.{ANSWER}"
            response = (
                None if function_response.get("response") is None else object_at(function_response, "response", path)
            )
            media = function_response.get("parts")
            if media is not None and not isinstance(media, list):
                raise wrong(f"{path}.parts", "a list", media)
            fields: dict[str, Any] = {
                "tool_call_id": optional_text_at(function_response, "id", path),
                "name": optional_text_at(function_response, "name", path),
                "is_error": True if response and response.get("error") else None,
            }
        except DecodeError:
            if not self._lenient:
                raise
            return None
        content, form = _text_of(response)
        if form is None and response is not None and "error" in response:
            fields["is_error"] = True
        of_parts: Source = {}
        for idx, part_source in enumerate(media or ()):
            part, residual = read_part(
                part_source, f"{path}.parts[{idx}]", camel=self._camel, signer=None, lenient=self._lenient
            )
            if isinstance(part, TextPart):  # ADK writes no text beside the response
                part, residual = opaque(part_source, self._camel), None
            if residual is not None:
                of_parts[str(len(content))] = residual
            content.append(part)
        sections: Source = {PARTS: of_parts, RESPONSE: form}
        message = ChatMessage.model_validate(
            {"role": "tool", "content": text_alone(content), **fields}, context=LENIENT
        )
        sections[RESULT] = keep_deep(source, encoded_result(message, sections, camel=self._camel))
        return content, fields, sections

    def _at(self, index: int) -> str:
        return f"{self._path}.content.parts[{index}]"


def _text_of(response: Source | None) -> tuple[list[Part], str | None]:
    """The content of a response, and its form if it is not the text of a `result` or an `error`."""
    if response is None:
        return [], None
    if len(response) == 1:
        [(key, value)] = response.items()
        if isinstance(value, str) and key in ("result", "error", OUTPUT):
            return [TextPart(text=value)], OUTPUT if key == OUTPUT else None
    return [TextPart(text=dumps(response))], AS_JSON


def _with_residual(message: ChatMessage, residual: Source) -> ChatMessage:
    filled = {key: value for key, value in residual.items() if value}
    return message.model_copy(update={"residual": filled}) if filled else message
