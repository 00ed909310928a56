"""Every format as the tests of all of them see it: what it can say, and what must come back.

`written` is how a payload reads as dicts, `levels` everything that may be asked of an object: its dumps with their key
order, its JSON, and where the format tells them, the fields given. `test_laws.py` has the laws.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel

from chatledger.formats.message_file import MessageItem, item_from_dict
from tests.formats.agent_framework import strategies as agent_framework
from tests.formats.agent_framework.samples import SAMPLES as AGENT_FRAMEWORK
from tests.formats.agent_service import strategies as agent_service
from tests.formats.anthropic import strategies as anthropic
from tests.formats.google_adk import strategies as google_adk
from tests.formats.google_adk.samples import SAMPLES as GOOGLE_ADK
from tests.formats.kosong import strategies as kosong
from tests.formats.kosong.play import dumps_of
from tests.formats.langchain import strategies as langchain
from tests.formats.langchain.samples import SAMPLES as LANGCHAIN
from tests.formats.message_file import strategies as message_file
from tests.formats.openai_chat import strategies as openai_chat
from tests.formats.openai_responses import strategies as openai_responses
from tests.formats.pydantic_ai import strategies as pydantic_ai
from tests.formats.pydantic_ai.samples import history
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
    whole: st.SearchStrategy[Any] | None = None
    """Payloads that are more than messages in a row: with something around them, or of another shape."""
    misshapen: st.SearchStrategy[Any] = field(default_factory=st.nothing)
    """Payloads of the right keys with anything under them."""
    residuals: st.SearchStrategy[Any] = field(default_factory=st.nothing)
    """Residuals of the right keys with anything under them."""
    filled: Callable[[Any], Any] = lambda message: message
    """A dict as an object of a class that fills in what the dict leaves out."""
    samples: Mapping[str, Any] = field(default_factory=dict)
    """Payloads that the format's own classes wrote."""

    @property
    def lists(self) -> st.SearchStrategy[list[Any]]:
        """Payloads that can stand one behind the other: objects, dicts, and both kinds mixed."""
        messages = self.messages if self.rows is None else self.messages | self.rows
        return st.lists(messages | self.messages.map(dumped), max_size=4)

    @property
    def payloads(self) -> st.SearchStrategy[Any]:
        return self.lists if self.whole is None else self.lists | self.whole

    def written(self, payload: Any) -> Any:
        """The payload as dicts, as it is written."""
        if isinstance(payload, (list, tuple)):
            return self.around([dumped(self.filled(message)) for message in payload])
        return payload if isinstance(payload, str) else dumped(payload)


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


def filled_item(item: Any) -> Any:
    return item_from_dict(item) if isinstance(item, dict) else item


def kosong_objects(messages: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(kosong.read_again, messages, kosong.ways)


def dumped(message: Any) -> Any:
    """A message as the dict that it reads as; any other value unchanged."""
    if isinstance(message, MessageItem):
        return message.to_dict()
    return message.model_dump() if isinstance(message, BaseModel) else message


ROUND_TRIPS = [
    RoundTrip(
        "openai-chat",
        openai_chat.messages,
        misshapen=openai_chat.misshapen_payloads,
        residuals=openai_chat.residuals,
    ),
    RoundTrip(
        "anthropic",
        anthropic.messages,
        around=lambda rows: {"messages": rows},
        whole=anthropic.payloads,
        misshapen=anthropic.misshapen_payloads,
        residuals=anthropic.residuals,
    ),
    RoundTrip(
        "openai-responses",
        openai_responses.items,
        whole=openai_responses.requests() | openai_chat.texts,
        misshapen=openai_responses.misshapen_payloads,
        residuals=openai_responses.residuals,
    ),
    RoundTrip("google-adk", google_adk.events, samples=GOOGLE_ADK),
    RoundTrip("langchain", langchain.messages, samples=LANGCHAIN),
    RoundTrip("message-file", message_file.items, levels=levels_of_item, filled=filled_item),
    RoundTrip(
        "agent-framework",
        agent_framework.messages,
        misshapen=agent_framework.misshapen_payloads,
        residuals=agent_framework.residuals,
        samples=AGENT_FRAMEWORK,
    ),
    RoundTrip(
        "pydantic-ai",
        pydantic_ai.messages,
        misshapen=pydantic_ai.misshapen_payloads,
        residuals=pydantic_ai.residuals,
        samples={"a history": history()},
    ),
    RoundTrip("qwen-agent", qwen_agent.messages, qwen_agent.rows, levels=levels_of_dumps),
    RoundTrip(
        "kosong/0.23", kosong_objects(kosong.older_messages), kosong.any_rows, dumps_of, residuals=kosong.residuals
    ),
    RoundTrip(
        "kosong/0.30", kosong_objects(kosong.newer_messages), kosong.any_rows, dumps_of, residuals=kosong.residuals
    ),
    RoundTrip(
        "agent-service",
        agent_service.chat_messages,
        agent_service.rows,
        levels_with_given_fields,
        around=lambda rows: {"messages": rows},
        inside=lambda history: history.messages,
        whole=agent_service.histories | agent_service.histories_of_objects,
    ),
]
