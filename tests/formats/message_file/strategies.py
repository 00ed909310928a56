"""Any valid item of a message file, with any outputs and calls."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from chatledger.formats.message_file import item_from_dict
from tests.formats.round_trip import RoundTrip

texts = st.text(max_size=8) | st.text(st.characters(codec=None), max_size=3) | st.sampled_from(["\ud800", "\x00"])
names = texts.filter(bool)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(texts, values, max_size=3)
seconds = st.integers(0, 10**20) | st.floats(0, allow_infinity=False)
mime_types = names | st.sampled_from(["text/plain", "text/html", "image/png", "audio/wav", "application/pdf"])

plain_outputs = st.fixed_dictionaries({"content": texts, "mime_type": mime_types, "nonce": names})
code_outputs = st.fixed_dictionaries(
    {"stdout": st.text(max_size=20), "stderr": texts},
    optional={"nonce": names, "status": st.integers() | texts, "duration": seconds, "lang": texts},
)
outputs = st.lists(plain_outputs | code_outputs, max_size=3, unique_by=lambda output: output.get("nonce", id(output)))
common: dict[str, st.SearchStrategy[Any]] = {
    "name": st.none() | names,
    "timeout": st.none() | seconds,
    "outputs": outputs,
    "history": st.lists(objects, max_size=2) | st.sampled_from(["none", "include", "summary"]),
    "heading_level": st.none() | st.integers(1, 5),
}
calls = st.fixed_dictionaries(
    {"type": st.just("function_call"), "function_name": names}, optional={**common, "args": objects}
)
named_apart = st.lists(calls, max_size=2, unique_by=lambda call: call.get("name") or id(call))
messages = st.fixed_dictionaries(
    {"type": st.just("message"), "content": texts},
    optional={**common, "mime_type": mime_types, "agent_name": st.none() | names, "function_calls": named_apart},
)
items = (messages | calls).map(item_from_dict)


def levels_of_item(item: Any) -> tuple[Any, ...]:
    return repr(item), json.dumps(item.to_dict())


def filled_item(item: Any) -> Any:
    return item_from_dict(item) if isinstance(item, dict) else item


TRIPS = [
    RoundTrip("message-file", items, levels=levels_of_item, filled=filled_item),
]
