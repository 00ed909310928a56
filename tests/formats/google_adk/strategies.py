"""Events as ADK's stores keep them, with parts of every kind, both spellings, unknown keys and keys in any order."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import strategies as st

from chatledger.formats.google_adk.parts import spelled
from tests.formats.google_adk.samples import SAMPLES
from tests.formats.round_trip import RoundTrip

texts = st.text(max_size=4) | st.sampled_from(["", "a", "\x00", "\ud800", "{", "_-8=", "+/8="])
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(width=16) | texts
_values: Any = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=3
)


def named(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The same with a short name: Hypothesis warns of a strategy whose name is very long."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Any:
        return draw(strategy)

    return drawn()


values = named(_values)
objects = st.dictionaries(texts, values, max_size=2)
ids = st.sampled_from(["", "adk-1", "adk-2"])
times = st.floats(0, 4e9) | st.integers(0, 4_000_000_000)


def shuffled(source: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """The same keys, sometimes in another order and with an unknown one."""

    @st.composite
    def drawn(draw: st.DrawFn) -> dict[str, Any]:
        given = draw(source)
        way = draw(st.sampled_from(["as it is", "as it is", "turned", "more"]))
        if way == "turned":
            return dict(reversed(list(given.items())))
        return {**given, "later": draw(values)} if way == "more" else given

    return drawn()


def fixed(optional: dict[str, Any] | None = None, /, **required: Any) -> st.SearchStrategy[dict[str, Any]]:
    return shuffled(st.fixed_dictionaries(required, optional=optional or {}))


mime_types = st.sampled_from(["image/png", "audio/wav", "video/mp4", "application/pdf", ""])
MEDIA = (
    ("inline_data", fixed({"display_name": texts, "mime_type": mime_types}, data=texts)),
    ("file_data", fixed({"display_name": texts, "mime_type": mime_types}, file_uri=texts)),
)
_media = st.one_of(*(fixed({"video_metadata": objects}, **{kind: medium}) for kind, medium in MEDIA))
responses = (
    objects
    | st.fixed_dictionaries({"result": texts})
    | st.fixed_dictionaries({"output": texts})
    | st.fixed_dictionaries({"error": scalars})
)
_results = fixed(
    function_response=fixed(
        {"id": ids, "name": texts, "response": responses | st.none(), "parts": st.lists(_media, max_size=2)}
    )
)
_calls = fixed(
    {"thought_signature": texts},
    function_call=fixed({"id": ids, "args": objects | st.none()}, name=st.sampled_from(["weather", "news"])),
)
_others = st.one_of(
    fixed({"thought": st.booleans(), "thought_signature": texts}, text=texts),
    _media,
    fixed(executable_code=objects),
    fixed(text=texts, function_call=objects),
    fixed({"thought": st.just(True)}, thought_signature=texts),
    objects,
)
_NESTED = ("function_call", "function_response", "inline_data", "file_data")


def in_spelling(part: Any, camel: bool) -> Any:
    if not camel or not isinstance(part, dict):
        return part
    part = {key: in_spelling(value, camel) if key in _NESTED else value for key, value in part.items()}
    if isinstance(part.get("parts"), list):
        part["parts"] = [in_spelling(medium, camel) for medium in part["parts"]]
    return spelled(part, camel)


_numbers = count(1)
_MORE = {
    "branch": texts,
    "partial": st.booleans(),
    "model_version": texts | st.sampled_from(["gemini-3", "claude-5"]),
    "finish_reason": texts,
    "usage_metadata": objects,
    "error_code": texts,
    "custom_metadata": objects,
    "actions": objects,
    "node_info": objects,
    "author": st.sampled_from(["user", "helper", "model"]),
    "timestamp": times,
}


@st.composite
def _events(draw: st.DrawFn) -> dict[str, Any]:
    camel = draw(st.booleans())
    parts = draw(st.lists(_calls | _others, max_size=3) | st.lists(_results | _results | _others, max_size=3))
    content = st.fixed_dictionaries(
        {"parts": st.just([in_spelling(part, camel) for part in parts])},
        optional={"role": st.sampled_from(["user", "model", "function"])},
    )
    event = draw(
        fixed(
            {**_MORE, "content": shuffled(content) | st.none() | st.just({})},
            invocation_id=texts,
            id=st.just("") | st.builds(lambda: f"event-{next(_numbers)}"),
        )
    )
    return {**spelled(event, camel)}


events = named(_events())

TRIPS = [
    RoundTrip("google-adk", events, samples=SAMPLES),
]
