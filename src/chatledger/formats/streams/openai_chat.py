"""The message of a stream of chat completions, of OpenAI and of the many servers that imitate it.

A draft is one message, so the chunks of other choices are put aside. `chat_merge` lists the differences to the message
of the SDK's own helper. The SDK also adds a null for each absent field of its class.
"""

from __future__ import annotations

from collections.abc import Sequence

from chatledger.errors import DecodeError
from chatledger.formats.openai_chat.parts import read_part
from chatledger.formats.streams.base import Event, Stream, error_text, field, require, some_text
from chatledger.formats.streams.chat_merge import Calls, is_named, merge_list, merge_named, merge_value, require_named
from chatledger.formats.streams.tree import Json, Object, grow, joined_by_guess, object_under, whole
from chatledger.models import Delta, ReasoningDelta, TextDelta, ToolCallDelta

DERIVED = frozenset(
    f"{prefix}.{suffix}"
    for prefix in ("content", "refusal", "logprobs.content", "logprobs.refusal", "tool_calls.function.arguments")
    for suffix in ("delta", "done")
)
"""Events that the SDK's helper makes from chunks, which it passes on too."""
_TEXTS = ("refusal", "name", "tool_call_id")


class OpenaiChatStream(Stream):
    def __init__(self) -> None:
        super().__init__(read_chat_deltas)
        self._message: Object | None = None
        self._calls = Calls()

    def payload(self) -> list[Object]:
        if self._message is None:
            return []
        message: Object = whole(self._message)
        if self._calls.calls:
            message["tool_calls"] = self._calls.named()
            if not message["tool_calls"]:
                del message["tool_calls"]
        if self._nameless_legacy() is not None:
            del message["function_call"]
        return [message if "role" in message else {"role": "assistant"} | message]

    @property
    def unknown(self) -> Sequence[Event]:
        """Includes the calls that never got a name: they cannot be run, and the payload leaves them out. At the end, it
        names each unknown key whose pieces differ and were joined.
        """
        nameless: list[Object] = [{"tool_calls": [call]} for call in self._calls.nameless()]
        legacy = self._nameless_legacy()
        nameless += [] if legacy is None else [{"function_call": legacy}]
        put_aside = ({"choices": [{"index": 0, "delta": delta}]} for delta in nameless)
        joined = joined_by_guess({**(self._message or {}), "tool_calls": self._calls.calls})
        return [*super().unknown, *put_aside, *({"joined": path} for path in joined)]

    def _nameless_legacy(self) -> Object | None:
        legacy: Object | None = whole((self._message or {}).get("function_call"))
        return None if legacy is None or is_named(legacy) else legacy

    def _plain(self, value: object) -> Event:
        """A chunk, also if the SDK's helper wrapped it into an event of its own."""
        event = super()._plain(value)
        chunk = event.get("chunk") if event.get("type") == "chunk" else None
        return chunk if isinstance(chunk, dict) else event

    def _take(self, event: Event) -> None:
        if field(event, "type", str) in DERIVED:
            return
        error = event.get("error") or (event if "error" in (event.get("object"), event.get("type")) else None)
        choices, usage = field(event, "choices", list), field(event, "usage", dict)
        require(any(value is not None for value in (error, choices, usage)), "$.choices", "missing")
        own = [choice for choice in choices or () if _is_own(choice)]
        deltas = [self._checked(choice) for choice in own]
        for choice, delta in zip(own, deltas, strict=True):
            self._merge(delta)
            self.finish_reason = field(choice, "finish_reason", str) or self.finish_reason
            self.usage = field(choice, "usage", dict) or self.usage  # Moonshot has it there
        self.usage = whole(usage or self.usage)
        if error is not None:
            self.failure = error_text(error)
        others = [choice for choice in choices or () if not (_is_own(choice) and _has_delta(choice))]
        if others:
            self._unknown.append(event | {"choices": others})
        if any(delta.get("role") not in (None, "", "assistant") for delta in deltas):
            self._unknown.append(event)  # its text is kept, as the assistant's

    def _checked(self, choice: Object) -> Object:
        """The delta of a choice. Raises DecodeError for one that would make a message that the codec cannot read."""
        path = "$.choices[0].delta"
        field(choice, "finish_reason", str)
        field(choice, "usage", dict)
        delta = field(choice, "delta", dict, "$.choices[0]") or {}
        if "delta" not in choice and choice.get("message") is not None:  # from a server that does not stream
            require(self._message is None, "$.choices[0].message", "a whole message after pieces of it")
            delta = field(choice, "message", dict, "$.choices[0]") or {}
        for key in _TEXTS:
            field(delta, key, str, path)
        content = delta.get("content")
        require(content is None or isinstance(content, (str, list)), f"{path}.content", "neither text nor a list")
        for part in content if isinstance(content, list) else ():
            read_part(part, f"{path}.content", lenient=False)
            require("type" in part or "index" not in part, f"{path}.content", "a piece of a part of no type")
        if delta.get("function_call") is not None:
            require_named(field(delta, "function_call", dict, path) or {}, "arguments", f"{path}.function_call")
        self._calls.require(field(delta, "tool_calls", list, path) or [], f"{path}.tool_calls")
        return delta

    def _merge(self, delta: Object) -> None:
        if not delta:
            return
        self._message = {} if self._message is None else self._message
        for key, value in delta.items():
            if key == "role":
                self._message["role"] = "assistant"
            elif key == "content" and value is not None:
                _merge_content(self._message, value)
            elif key == "tool_calls":
                self._message.setdefault(key, None if value is None else [])
                self._calls.add(value or [])
            elif key == "function_call" and value is not None:
                merge_named(object_under(self._message, key), value)
            else:
                merge_value(self._message, key, value)


def _is_own(choice: Json) -> bool:
    return isinstance(choice, dict) and choice.get("index") in (None, 0) and choice.get("index") is not False


def _has_delta(choice: Object) -> bool:
    """A choice of a text completion has none. What it says of the end counts all the same."""
    return "delta" in choice or choice.get("message") is not None


def _merge_content(message: Object, value: Json) -> None:
    """Text and lists of parts may alternate: servers of models that reason begin with a list and go on with texts."""
    held = message.get("content")
    if isinstance(value, str) and not isinstance(held, list):
        grow(message, "content", value)
        return
    if not isinstance(held, list):
        message["content"] = [{"type": "text", "text": held}] if held else []
    text = [{"type": "text", "text": value}] if value else []
    merge_list(message["content"], text if isinstance(value, str) else value)


# --- Pieces of a draft ------------------------------------------------------------------------------------------------
# Chunks of OpenAI chat completions, and of the many servers that imitate them.
#
# Other servers add `reasoning_content` or `reasoning`. A refusal counts as text.


def read_chat_deltas(event: Event) -> Sequence[Delta]:
    deltas: list[Delta] = []
    for number, choice in enumerate(field(event, "choices", list, "$") or ()):
        path = f"$.choices[{number}]"
        if isinstance(choice, dict) and choice.get("index") in (None, 0):  # a draft is one message
            deltas += _read_delta(field(choice, "delta", dict, path) or {}, f"{path}.delta")
    return deltas


def _read_delta(delta: Event, path: str) -> list[Delta]:
    deltas: list[Delta] = []
    reasoning = some_text(delta, "reasoning_content", path) or some_text(delta, "reasoning", path)
    if reasoning is not None:
        deltas.append(ReasoningDelta(text=reasoning))
    if isinstance(delta.get("content"), list):  # from models that reason inside their content
        parts = (read_part(part, f"{path}.content", lenient=False) for part in delta["content"])
        deltas += [part for part, _ in parts]
        delta = {key: value for key, value in delta.items() if key != "content"}
    for key in ("content", "refusal"):
        text = some_text(delta, key, path)
        if text is not None:
            deltas.append(TextDelta(text=text))
    for number, call in enumerate(field(delta, "tool_calls", list, path) or ()):
        deltas.append(_read_call(call, f"{path}.tool_calls[{number}]"))
    legacy = field(delta, "function_call", dict, path)
    if legacy is not None:
        deltas.append(_named(legacy, f"{path}.function_call"))
    return deltas


def _read_call(call: object, path: str) -> ToolCallDelta:
    if not isinstance(call, dict):
        raise DecodeError(path, f"expected a dict, not {type(call).__name__}")
    function = field(call, "function", dict, path)
    custom = field(call, "custom", dict, path)
    named = _named(function or {}, f"{path}.function") if custom is None else _custom(custom, f"{path}.custom")
    return named.model_copy(update={"index": field(call, "index", int, path), "id": some_text(call, "id", path)})


def _named(function: Event, path: str) -> ToolCallDelta:
    return ToolCallDelta(name=some_text(function, "name", path), arguments=field(function, "arguments", str, path))


def _custom(custom: Event, path: str) -> ToolCallDelta:
    return ToolCallDelta(name=some_text(custom, "name", path), arguments=field(custom, "input", str, path))
