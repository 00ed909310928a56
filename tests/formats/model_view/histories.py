"""Histories as a lenient store may hold them: ids and names that meet, results anywhere, parts of every kind."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from chatledger import AudioPart, ChatMessage, FilePart, ImagePart, OpaquePart, TextPart, ThinkPart, ToolCall, VideoPart
from chatledger.models import LENIENT
from chatledger.models.json import JsonValue

IDS = st.sampled_from([None, "a", "a", "b", "call_1_0", "", "a b", "é:0", "x" * 70, "x" * 71, "\ud800\x00"])
NAMES = st.sampled_from(["f", "g", "f g", "n" * 70, "tool.é"])
TEXTS = st.sampled_from(["", " ", "\n", "hello", "hello \n", "ein Wort", "\udfff"])
ARGUMENTS = st.sampled_from([None, "", "{}", '{"a": 1}', "[1]", "not json", {}, {"a": None}])
CALLS = st.builds(ToolCall, id=IDS, name=NAMES, arguments=ARGUMENTS, extras=st.sampled_from([None, {"a": 1}]))
MEDIA: dict[str, Any] = {
    "url": st.sampled_from([None, "https://example.org/i", "data:image/png;base64,QQ=="]),
    "data": st.sampled_from([None, "QQ=="]),
    "mime_type": st.sampled_from([None, "image/png", "audio/wav", "application/pdf", "video/mp4"]),
    "name": st.sampled_from([None, "n.pdf"]),
    "id": st.sampled_from([None, "file-1"]),
}
THINKING = st.builds(ThinkPart, text=TEXTS, signature=st.sampled_from([None, "", "sig"]))
OPAQUE = st.builds(OpaquePart, type=st.just("weird"), value=st.just({"type": "weird", "a": 1}))
FORMATS = st.sampled_from([None, None, "openai-chat", "openai-responses", "anthropic", "kosong/0.30", "qwen-agent"])
ROLES = st.sampled_from(
    [
        "user",
        "user",
        "assistant",
        "assistant",
        "assistant",
        "tool",
        "tool",
        "tool",
        "system",
        "developer",
        "custom",
        "x",
    ]
)


def parts(own: bool) -> st.SearchStrategy[Any]:
    """A part that only its own format understands is that provider's to judge, so none claims to be of ours."""
    known: list[st.SearchStrategy[Any]] = [
        st.builds(TextPart, text=TEXTS),
        st.builds(TextPart, text=TEXTS),
        *(st.builds(kind, **MEDIA) for kind in (ImagePart, AudioPart, VideoPart, FilePart)),
        THINKING,
    ]
    return st.builds(TextPart, text=TEXTS) if own else st.one_of(*known, OPAQUE)


@st.composite
def messages(draw: st.DrawFn, seq: int = 1) -> ChatMessage:
    role, source = draw(ROLES), draw(FORMATS)
    own = source in ("openai-chat", "openai-responses", "anthropic")
    calls = draw(st.integers(0, 9)) < (6 if role == "assistant" else 1)
    fields: dict[str, JsonValue] = {
        "role": role,
        "seq": seq,
        "format": source,
        "content": draw(st.none() | TEXTS | st.lists(parts(own), max_size=3)),
        "reasoning": None if own else draw(st.none() | TEXTS | st.lists(THINKING, max_size=2)),
        "name": draw(st.none() | NAMES) if role == "tool" else draw(st.sampled_from([None, None, "ada", "a <b>"])),
        "tool_calls": draw(st.lists(CALLS, max_size=3)) if calls else None,
        "tool_call_id": draw(IDS) if role == "tool" or draw(st.integers(0, 19)) == 0 else None,
        "is_error": draw(st.sampled_from([None, None, True])) if role == "tool" else None,
        "run_id": draw(st.sampled_from([None, "r", "s"])),
        "state": draw(st.sampled_from(["complete"] * 9 + ["partial", "interrupted"])),
    }
    return ChatMessage.model_validate(fields, context=LENIENT)


@st.composite
def histories(draw: st.DrawFn) -> list[ChatMessage]:
    return [draw(messages(seq)) for seq in range(1, draw(st.integers(0, 10)) + 1)]
