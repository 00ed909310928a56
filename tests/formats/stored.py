"""Messages as they may be stored, of any format and shape, with any residual."""

from __future__ import annotations

from hypothesis import strategies as st

from chatledger.models import (
    LENIENT,
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    OpaquePart,
    RulesLevel,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
)
from tests.formats.openai_chat.strategies import Json, json_values, nullable_texts, texts

levels: st.SearchStrategy[RulesLevel] = st.sampled_from(["strict", "lenient"])

extras = st.none() | st.dictionaries(texts | st.just("detail"), json_values, max_size=2)
urls = st.none() | texts | st.sampled_from(["data:audio/wav;base64,QQ==", "data:,x", "https://h/x"])
mime_types = st.none() | st.sampled_from(["audio/mpeg", "image/png", ""])
media_fields = {"url": urls, "data": nullable_texts, "mime_type": mime_types, "name": nullable_texts, "extras": extras}
media = [st.builds(kind, id=nullable_texts, **media_fields) for kind in (ImagePart, AudioPart, VideoPart, FilePart)]
stored_parts = st.one_of(
    st.builds(TextPart, text=texts, extras=extras),
    st.builds(ThinkPart, text=texts, signature=nullable_texts),
    st.builds(OpaquePart, type=nullable_texts, value=json_values),
    *media,
)
stored_contents = nullable_texts | st.lists(stored_parts, max_size=3)
stored_calls = st.builds(
    ToolCall,
    id=nullable_texts,
    name=texts,
    arguments=nullable_texts | st.dictionaries(texts, json_values, max_size=2),
    extras=extras,
)
stored_fields: dict[str, Json] = {
    "role": st.sampled_from(["system", "developer", "user", "assistant", "tool", "custom", "function", "narrator"]),
    "content": stored_contents,
    "reasoning": stored_contents,
    "name": nullable_texts | st.just("ada"),
    "tool_calls": st.none() | st.lists(stored_calls, max_size=2),
    "tool_call_id": nullable_texts,
    "is_error": st.sampled_from([None, True, False]),
    "seq": st.none() | st.integers(1, 9),
    "custom_data": extras,
}


def stored(formats: list[str | None], **more: Json) -> st.SearchStrategy[ChatMessage]:
    fields = st.fixed_dictionaries({**stored_fields, "format": st.sampled_from(formats), **more})
    return fields.map(lambda given: ChatMessage.model_validate(given, context=LENIENT))
