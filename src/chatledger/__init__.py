"""The conversation store of LLM applications.

It keeps every message, content part, tool call, run and score of an application in SQL tables that its owner can read.
Each message is written once, stays valid, and can be read in any supported framework's format.

    from chatledger import ChatMessage, Ledger

    async with Ledger.open() as ledger:
        thread = await ledger.threads.create(title="Weather")
        await ledger.messages.append(thread.thread_id, [ChatMessage(role="user", content="Tokyo?")])

The names in `__all__` are the public interface, and for the author of a format those that
docs/formats/write-a-format.md names; everything else may change in any release. `__version__` is the release.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from chatledger.errors import (
        AlreadyExists,
        BranchNotFound,
        ChatLedgerError,
        Conflict,
        DamagedCell,
        DecodeError,
        DraftLive,
        DraftLost,
        EncodeError,
        EncryptionError,
        Erased,
        FeedbackNotFound,
        FormatError,
        IdConflict,
        InvalidArgument,
        InvalidCursor,
        KeyUnavailable,
        KvConflict,
        LimitExceeded,
        MessageNotFound,
        MissingExtra,
        NotAuthentic,
        NotEncrypted,
        NotFound,
        NothingToSend,
        OutcomeUnknown,
        RevisionConflict,
        RuleViolation,
        RunConflict,
        RunNotFound,
        SchemaMismatch,
        StorageError,
        TenantEncrypted,
        TenantOnly,
        ThreadNotFound,
        UnknownFormat,
        VersionConflict,
    )
    from chatledger.ledger import Ledger, Transaction
    from chatledger.models import (
        Alternative,
        Appended,
        AudioPart,
        Branch,
        CallPlace,
        ChatMessage,
        Deleted,
        Erasure,
        Feedback,
        FeedbackSummary,
        FilePart,
        FormattedHistory,
        History,
        ImagePart,
        KvValue,
        Limits,
        Loss,
        Metrics,
        OpaquePart,
        Page,
        PartialMessage,
        ReasoningDelta,
        Repair,
        Revision,
        Run,
        TextDelta,
        TextPart,
        ThinkPart,
        Thread,
        ThreadChange,
        ToolCall,
        ToolCallDelta,
        Usage,
        VideoPart,
        Violation,
    )
    from chatledger.rules import CheckedThread, Finding
    from chatledger.storage.drivers.urls import configure_sqlite
    from chatledger.storage.repositories.drafts import Draft
    from chatledger.storage.rows.keys import KeyRing, read_keys
    from chatledger.storage.upgrade.backup import backup, restore
    from chatledger.storage.upgrade.migrate import alembic_include_name, migrate, offline_sql, schema_status
    from chatledger.storage.upgrade.versions import SchemaStatus
    from chatledger.telemetry.otel import OpenTelemetry

__all__ = [
    "AlreadyExists",
    "Alternative",
    "Appended",
    "AudioPart",
    "Branch",
    "BranchNotFound",
    "CallPlace",
    "ChatLedgerError",
    "ChatMessage",
    "CheckedThread",
    "Conflict",
    "DamagedCell",
    "DecodeError",
    "Deleted",
    "Draft",
    "DraftLive",
    "DraftLost",
    "EncodeError",
    "EncryptionError",
    "Erased",
    "Erasure",
    "Feedback",
    "FeedbackNotFound",
    "FeedbackSummary",
    "FilePart",
    "Finding",
    "FormatError",
    "FormattedHistory",
    "History",
    "IdConflict",
    "ImagePart",
    "InvalidArgument",
    "InvalidCursor",
    "KeyRing",
    "KeyUnavailable",
    "KvConflict",
    "KvValue",
    "Ledger",
    "LimitExceeded",
    "Limits",
    "Loss",
    "MessageNotFound",
    "Metrics",
    "MissingExtra",
    "NotAuthentic",
    "NotEncrypted",
    "NotFound",
    "NothingToSend",
    "OpaquePart",
    "OpenTelemetry",
    "OutcomeUnknown",
    "Page",
    "PartialMessage",
    "ReasoningDelta",
    "Repair",
    "Revision",
    "RevisionConflict",
    "RuleViolation",
    "Run",
    "RunConflict",
    "RunNotFound",
    "SchemaMismatch",
    "SchemaStatus",
    "StorageError",
    "TenantEncrypted",
    "TenantOnly",
    "TextDelta",
    "TextPart",
    "ThinkPart",
    "Thread",
    "ThreadChange",
    "ThreadNotFound",
    "ToolCall",
    "ToolCallDelta",
    "Transaction",
    "UnknownFormat",
    "Usage",
    "VersionConflict",
    "VideoPart",
    "Violation",
    "alembic_include_name",
    "backup",
    "configure_sqlite",
    "migrate",
    "offline_sql",
    "read_keys",
    "restore",
    "schema_status",
]

_HOMES = {
    "chatledger.ledger": {"Ledger", "Transaction"},
    "chatledger.rules": {"CheckedThread", "Finding"},
    "chatledger.storage.upgrade.backup": {"backup", "restore"},
    "chatledger.storage.repositories.drafts": {"Draft"},
    "chatledger.storage.drivers.urls": {"configure_sqlite"},
    "chatledger.storage.rows.keys": {"KeyRing", "read_keys"},
    "chatledger.storage.upgrade.migrate": {"alembic_include_name", "migrate", "offline_sql", "schema_status"},
    "chatledger.storage.upgrade.versions": {"SchemaStatus"},
    "chatledger.telemetry.otel": {"OpenTelemetry"},
    "chatledger.models": {
        "Alternative",
        "Appended",
        "AudioPart",
        "Branch",
        "CallPlace",
        "ChatMessage",
        "Deleted",
        "Erasure",
        "Feedback",
        "FeedbackSummary",
        "FilePart",
        "FormattedHistory",
        "History",
        "ImagePart",
        "KvValue",
        "Limits",
        "Loss",
        "Metrics",
        "OpaquePart",
        "Page",
        "PartialMessage",
        "ReasoningDelta",
        "Repair",
        "Revision",
        "Run",
        "TextDelta",
        "TextPart",
        "ThinkPart",
        "Thread",
        "ThreadChange",
        "ToolCall",
        "ToolCallDelta",
        "Usage",
        "VideoPart",
        "Violation",
    },
    "chatledger.errors": {
        "AlreadyExists",
        "BranchNotFound",
        "ChatLedgerError",
        "Conflict",
        "DamagedCell",
        "DecodeError",
        "DraftLive",
        "DraftLost",
        "EncodeError",
        "EncryptionError",
        "Erased",
        "FeedbackNotFound",
        "FormatError",
        "IdConflict",
        "InvalidArgument",
        "InvalidCursor",
        "KeyUnavailable",
        "KvConflict",
        "LimitExceeded",
        "MessageNotFound",
        "MissingExtra",
        "NotAuthentic",
        "NotEncrypted",
        "NotFound",
        "NothingToSend",
        "OutcomeUnknown",
        "RevisionConflict",
        "RuleViolation",
        "RunConflict",
        "RunNotFound",
        "SchemaMismatch",
        "StorageError",
        "TenantEncrypted",
        "TenantOnly",
        "ThreadNotFound",
        "UnknownFormat",
        "VersionConflict",
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
