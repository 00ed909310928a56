"""The conversation store of LLM applications.

It keeps every message, content part, tool call, run and score of an application in SQL tables that its owner can read.
Each message is written once, stays valid, and can be read in any supported framework's format.

    from chatledger import ChatMessage, Ledger

    async with Ledger.open() as ledger:
        thread = await ledger.threads.create(title="Weather")
        await ledger.messages.append(thread.thread_id, [ChatMessage(role="user", content="Tokyo?")])

These are the names that programs write. `chatledger.types` has the values that calls return, `chatledger.errors` the
errors, `chatledger.admin` the functions of administration. The names in `__all__` of these modules are the public
interface, and for the author of a format those that docs/contribute/write-a-format.md names; everything else may change
in any release. `__version__` is the release.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from chatledger.errors import (
        ChatLedgerError,
        Conflict,
        InvalidArgument,
        NotFound,
        RuleViolation,
        StorageError,
        ThreadNotFound,
        VersionConflict,
    )
    from chatledger.ledger import Ledger, Transaction
    from chatledger.models import (
        Appended,
        AudioPart,
        ChatMessage,
        Cursor,
        Feedback,
        FilePart,
        ImagePart,
        Limits,
        Mark,
        Newest,
        NewThread,
        Oldest,
        OpaquePart,
        Payload,
        Put,
        ReasoningDelta,
        TextDelta,
        TextPart,
        ThinkPart,
        Thread,
        Tokens,
        ToolCall,
        ToolCallDelta,
        Turns,
        Usage,
        VideoPart,
    )
    from chatledger.repositories.history import History, Prompt
    from chatledger.storage.databases.postgresql.options import PostgreSQL
    from chatledger.storage.drafts.draft import Draft, Pace
    from chatledger.storage.rows.keys import Encryption, KeyRing
    from chatledger.telemetry.settings import OpenTelemetry

__all__ = [
    "Appended",
    "AudioPart",
    "ChatLedgerError",
    "ChatMessage",
    "Conflict",
    "Cursor",
    "Draft",
    "Encryption",
    "Feedback",
    "FilePart",
    "History",
    "ImagePart",
    "InvalidArgument",
    "KeyRing",
    "Ledger",
    "Limits",
    "Mark",
    "NewThread",
    "Newest",
    "NotFound",
    "Oldest",
    "OpaquePart",
    "OpenTelemetry",
    "Pace",
    "Payload",
    "PostgreSQL",
    "Prompt",
    "Put",
    "ReasoningDelta",
    "RuleViolation",
    "StorageError",
    "TextDelta",
    "TextPart",
    "ThinkPart",
    "Thread",
    "ThreadNotFound",
    "Tokens",
    "ToolCall",
    "ToolCallDelta",
    "Transaction",
    "Turns",
    "Usage",
    "VersionConflict",
    "VideoPart",
]

_HOMES = {
    "chatledger.errors": {
        "ChatLedgerError",
        "Conflict",
        "InvalidArgument",
        "NotFound",
        "RuleViolation",
        "StorageError",
        "ThreadNotFound",
        "VersionConflict",
    },
    "chatledger.ledger": {
        "Ledger",
        "Transaction",
    },
    "chatledger.models": {
        "Appended",
        "AudioPart",
        "ChatMessage",
        "Cursor",
        "Feedback",
        "FilePart",
        "ImagePart",
        "Limits",
        "Mark",
        "NewThread",
        "Newest",
        "Oldest",
        "OpaquePart",
        "Payload",
        "Put",
        "ReasoningDelta",
        "TextDelta",
        "TextPart",
        "ThinkPart",
        "Thread",
        "Tokens",
        "ToolCall",
        "ToolCallDelta",
        "Turns",
        "Usage",
        "VideoPart",
    },
    "chatledger.repositories.history": {
        "History",
        "Prompt",
    },
    "chatledger.storage.databases.postgresql.options": {
        "PostgreSQL",
    },
    "chatledger.storage.drafts.draft": {
        "Draft",
        "Pace",
    },
    "chatledger.storage.rows.keys": {
        "Encryption",
        "KeyRing",
    },
    "chatledger.telemetry.settings": {
        "OpenTelemetry",
    },
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

logging.getLogger("chatledger").addHandler(logging.NullHandler())  # quiet, unless the application wants to hear


def __getattr__(name: str) -> Any:
    """Load a public name on first use. So `chatledger --help` does not wait half a second for SQLAlchemy and Pydantic,
    and a service does not load Alembic, which most processes never need.
    """
    if name == "__version__":
        from importlib.metadata import version

        return version("chatledger")
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
