"""Every format as the tests of all of them see it: what it can say, and what must come back.

`payloads` makes several messages in one payload. `dicts` is how a payload reads as dicts, `levels` everything that may
be asked of an object: its dumps with their key order, its JSON, and where the format tells them, the fields given.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from chatledger.formats.message_file import MessageItem
from tests.formats.agent_framework import strategies as agent_framework
from tests.formats.agent_service import strategies as agent_service
from tests.formats.anthropic import strategies as anthropic
from tests.formats.google_adk import strategies as google_adk
from tests.formats.kosong import strategies as kosong
from tests.formats.kosong.play import dumps_of
from tests.formats.langchain import strategies as langchain
from tests.formats.message_file import strategies as message_file
from tests.formats.openai_chat.strategies import messages as openai_messages
from tests.formats.openai_responses import strategies as openai_responses
from tests.formats.pydantic_ai import strategies as pydantic_ai
from tests.formats.qwen_agent import strategies as qwen_agent


@dataclass(frozen=True)
class RoundTrip:
    format: str
    messages: st.SearchStrategy[Any]
    """One message: an object of the format's own, or a dict where it has none."""
    rows: st.SearchStrategy[dict[str, Any]] | None = None
    """One message as a dict with any key order and unknown keys, where that is more than the dump of an object."""
    levels: Callable[[Any], Any] | None = None
    around: Callable[[list[Any]], Any] = list
    """The payload of some messages as dicts."""
    inside: Callable[[Any], Any] = list
    """The objects of a payload of objects."""


def json_or_refusal(message: Any, **options: Any) -> str:
    try:
        return str(message.model_dump_json(**options))
    except ValueError as error:  # a lone surrogate has no UTF-8
        return repr(error)


def levels_of_dumps(message: Any) -> tuple[Any, ...]:
    """The object and its dumps as text, in which NaN equals NaN and key order counts."""
    flags: list[dict[str, bool]] = [{"exclude_none": False}, {"exclude_none": True}]
    dumps = [(repr(message.model_dump(**options)), json_or_refusal(message, **options)) for options in flags]
    return type(message).__name__, repr(message), dumps


def levels_with_given_fields(message: Any) -> tuple[Any, ...]:
    given = repr(message.model_dump(exclude_unset=True)), json_or_refusal(message, exclude_unset=True)
    return *levels_of_dumps(message), given, message.model_fields_set


def levels_of_item(item: Any) -> tuple[Any, ...]:
    return repr(item), json.dumps(item.to_dict())


def kosong_objects(messages: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kosong.read_again, messages, kosong.ways)


def dumped(message: Any) -> Any:
    """A message as the dict that it reads as."""
    if isinstance(message, dict):
        return message
    return message.to_dict() if isinstance(message, MessageItem) else message.model_dump()


ROUND_TRIPS = [
    RoundTrip("openai-chat", openai_messages),
    RoundTrip("anthropic", anthropic.messages, around=lambda rows: {"messages": rows}),
    RoundTrip("openai-responses", openai_responses.items),
    RoundTrip("google-adk", google_adk.events),
    RoundTrip("langchain", langchain.messages),
    RoundTrip("message-file", message_file.items, levels=levels_of_item),
    RoundTrip("agent-framework", agent_framework.messages),
    RoundTrip("pydantic-ai", pydantic_ai.messages),
    RoundTrip("qwen-agent", qwen_agent.messages, levels=levels_of_dumps),
    RoundTrip("kosong/0.23", kosong_objects(kosong.older_messages), kosong.any_rows, dumps_of),
    RoundTrip("kosong/0.30", kosong_objects(kosong.newer_messages), kosong.any_rows, dumps_of),
    RoundTrip(
        "agent-service",
        agent_service.chat_messages,
        agent_service.rows,
        levels_with_given_fields,
        around=lambda rows: {"messages": rows},
        inside=lambda history: history.messages,
    ),
]
