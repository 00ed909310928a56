"""Classes of a service, and messages as this format writes them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, create_model

from chatledger.formats.agent_service import CODEC, ChatMessage
from chatledger.formats.agent_service.foreign import _FIELDS
from chatledger.models import ChatMessage as LedgerMessage
from tests.formats.measured import encode


class _Base(BaseModel):
    model_config = ConfigDict(extra="allow")


def a_service_class() -> Any:
    """A service's own ChatMessage: the same fields, and one that a newer release added."""
    fields = {name: (field.annotation, field) for name, field in ChatMessage.model_fields.items()}
    definitions: dict[str, Any] = {**fields, "citations": (list[str], [])}
    return create_model("ChatMessage", __base__=_Base, **definitions)


class SimpleHistory(BaseModel):
    messages: list[Any]


def encoded(message: LedgerMessage, **options: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The dict and the losses of one message, whose seq is 3."""
    result = encode(CODEC, [message.model_copy(update={"seq": 3})], **options)
    assert {loss.seq for loss in result.losses} <= {3}
    return result.payload["messages"][0], [(loss.code, loss.path) for loss in result.losses]


def a_message(**fields: Any) -> dict[str, Any]:
    return {**ChatMessage(type="ai", content="").model_dump(), **fields}


def said(message: LedgerMessage) -> dict[str, Any]:
    return message.model_dump(include={*_FIELDS, "run_id"})
