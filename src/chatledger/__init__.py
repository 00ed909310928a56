"""The conversation store of LLM applications.

Every message, content part, tool call, run and score of an application in SQL tables that its owner can read: written
once, valid for good, readable in any framework's format.

    from chatledger import ChatMessage, Ledger

    async with Ledger.open() as ledger:
        thread = await ledger.threads.create(title="Weather")
        await ledger.messages.append(thread.thread_id, [ChatMessage(role="user", content="Tokyo?")])

What is listed in `__all__` is a promise; everything else may change on any day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chatledger.errors import (
    AlreadyExists,
    BranchNotFound,
    ChatLedgerError,
    Conflict,
    DecodeError,
    EncodeError,
    FormatError,
    IdConflict,
    InvalidCursor,
    LimitExceeded,
    MessageNotFound,
    MissingExtra,
    NotFound,
    OutcomeUnknown,
    RuleViolation,
    RunConflict,
    RunNotFound,
    SchemaMismatch,
    StorageError,
    ThreadNotFound,
    UnknownFormat,
    VersionConflict,
)
from chatledger.ledger import Ledger, Transaction
from chatledger.models import (
    Appended,
    AudioPart,
    Branch,
    ChatMessage,
    Deleted,
    Feedback,
    FeedbackSummary,
    FilePart,
    FormattedHistory,
    History,
    ImagePart,
    Limits,
    Loss,
    OpaquePart,
    Page,
    Run,
    TextPart,
    ThinkPart,
    Thread,
    ToolCall,
    Usage,
    VideoPart,
    Violation,
)
from chatledger.rules import Finding
from chatledger.storage.engine import configure_sqlite
from chatledger.storage.schema import SchemaStatus

if TYPE_CHECKING:
    from chatledger.storage.migrate import alembic_include_name, migrate, offline_sql, schema_status

__all__ = [
    "AlreadyExists",
    "Appended",
    "AudioPart",
    "Branch",
    "BranchNotFound",
    "ChatLedgerError",
    "ChatMessage",
    "Conflict",
    "DecodeError",
    "Deleted",
    "EncodeError",
    "Feedback",
    "FeedbackSummary",
    "FilePart",
    "Finding",
    "FormatError",
    "FormattedHistory",
    "History",
    "IdConflict",
    "ImagePart",
    "InvalidCursor",
    "Ledger",
    "LimitExceeded",
    "Limits",
    "Loss",
    "MessageNotFound",
    "MissingExtra",
    "NotFound",
    "OpaquePart",
    "OutcomeUnknown",
    "Page",
    "RuleViolation",
    "Run",
    "RunConflict",
    "RunNotFound",
    "SchemaMismatch",
    "SchemaStatus",
    "StorageError",
    "TextPart",
    "ThinkPart",
    "Thread",
    "ThreadNotFound",
    "ToolCall",
    "Transaction",
    "UnknownFormat",
    "Usage",
    "VersionConflict",
    "VideoPart",
    "Violation",
    "alembic_include_name",
    "configure_sqlite",
    "migrate",
    "offline_sql",
    "schema_status",
]

_WITH_ALEMBIC = {"alembic_include_name", "migrate", "offline_sql", "schema_status"}


def __getattr__(name: str) -> Any:
    """Alembic costs a third of a second to import and most processes never migrate, so it is loaded on first use."""
    if name in _WITH_ALEMBIC:
        from chatledger.storage import migrate

        return getattr(migrate, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
