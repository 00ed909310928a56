"""The values that calls return, and the words of their signatures."""

from __future__ import annotations

from chatledger.models import (
    Alternative,
    Branch,
    CallPlace,
    ChangeKind,
    CopyReport,
    Deleted,
    Delta,
    Encoded,
    Erasure,
    ErasureKind,
    FeedbackComparison,
    FeedbackSummary,
    FrameTable,
    Hit,
    HitField,
    IntervalMethod,
    Json,
    JsonObject,
    JsonValue,
    KvValue,
    LedgerStats,
    Loss,
    Messages,
    Metrics,
    OpenDraft,
    Page,
    Part,
    Position,
    Progress,
    Repair,
    Revision,
    RulesLevel,
    Run,
    RunPrices,
    RunStatus,
    State,
    ThreadChange,
    ThreadChangeKind,
    UsageSummary,
    Violation,
)
from chatledger.models.windows import Window
from chatledger.repositories.erasures import Owner
from chatledger.repositories.history import PromptFormat
from chatledger.rules import (
    CheckedThread,
    Finding,
    Severity,
)
from chatledger.storage.append.request import (
    OnOpenCalls,
)
from chatledger.storage.history.tokens import (
    CountTokens,
)
from chatledger.storage.lists.thread_list import (
    ThreadOrder,
)
from chatledger.storage.repositories.kv import (
    KvScope,
)
from chatledger.storage.rows.keys import (
    Keys,
)

__all__ = [
    "Alternative",
    "Branch",
    "CallPlace",
    "ChangeKind",
    "CheckedThread",
    "CopyReport",
    "CountTokens",
    "Deleted",
    "Delta",
    "Encoded",
    "Erasure",
    "ErasureKind",
    "FeedbackComparison",
    "FeedbackSummary",
    "Finding",
    "FrameTable",
    "Hit",
    "HitField",
    "IntervalMethod",
    "Json",
    "JsonObject",
    "JsonValue",
    "Keys",
    "KvScope",
    "KvValue",
    "LedgerStats",
    "Loss",
    "Messages",
    "Metrics",
    "OnOpenCalls",
    "OpenDraft",
    "Owner",
    "Page",
    "Part",
    "Position",
    "Progress",
    "PromptFormat",
    "Repair",
    "Revision",
    "RulesLevel",
    "Run",
    "RunPrices",
    "RunStatus",
    "Severity",
    "State",
    "ThreadChange",
    "ThreadChangeKind",
    "ThreadOrder",
    "UsageSummary",
    "Violation",
    "Window",
]
