"""Frozen models of the ledger's objects. They know neither SQL nor the formats of providers."""

from chatledger.models.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from chatledger.models.erasures import Erasure, ErasureKind
from chatledger.models.feedback import Feedback, FeedbackSummary
from chatledger.models.hits import Hit, HitField
from chatledger.models.json import Json, JsonObject, JsonValue
from chatledger.models.kv import KvValue, Put
from chatledger.models.limits import Limits
from chatledger.models.messages import (
    BACK,
    CONTINUES,
    LENIENT,
    ROLES,
    CallPlace,
    ChatMessage,
    State,
    ToolCall,
    Violation,
    continues,
    is_redacted,
)
from chatledger.models.metrics import Metrics
from chatledger.models.open_drafts import OpenDraft
from chatledger.models.outputs import Output, ThreadAgent
from chatledger.models.pages import Appended, Encoded, Loss, Page, Repair
from chatledger.models.parts import (
    AudioPart,
    FilePart,
    ImagePart,
    MediaPart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    VideoPart,
)
from chatledger.models.payload import Messages, Payload
from chatledger.models.progress import Progress
from chatledger.models.revisions import ChangeKind, Revision
from chatledger.models.runs import Run, RunStatus, Usage
from chatledger.models.summaries import (
    FeedbackComparison,
    FrameTable,
    IntervalMethod,
    LedgerStats,
    RunPrices,
    UsageSummary,
)
from chatledger.models.thread_changes import ThreadChange, ThreadChangeKind
from chatledger.models.threads import Alternative, Branch, Deleted, NewThread, RulesLevel, Thread
from chatledger.models.windows import Cursor, Mark, Newest, Oldest, Position, Tokens, Turns

__all__ = [
    "BACK",
    "CONTINUES",
    "LENIENT",
    "ROLES",
    "Alternative",
    "Appended",
    "AudioPart",
    "Branch",
    "CallPlace",
    "ChangeKind",
    "ChatMessage",
    "Cursor",
    "Deleted",
    "Delta",
    "Encoded",
    "Erasure",
    "ErasureKind",
    "Feedback",
    "FeedbackComparison",
    "FeedbackSummary",
    "FilePart",
    "FrameTable",
    "Hit",
    "HitField",
    "ImagePart",
    "IntervalMethod",
    "Json",
    "JsonObject",
    "JsonValue",
    "KvValue",
    "LedgerStats",
    "Limits",
    "Loss",
    "Mark",
    "MediaPart",
    "Messages",
    "Metrics",
    "NewThread",
    "Newest",
    "Oldest",
    "OpaquePart",
    "OpenDraft",
    "Output",
    "Page",
    "Part",
    "Payload",
    "Position",
    "Progress",
    "Put",
    "ReasoningDelta",
    "Repair",
    "Revision",
    "RulesLevel",
    "Run",
    "RunPrices",
    "RunStatus",
    "State",
    "TextDelta",
    "TextPart",
    "ThinkPart",
    "Thread",
    "ThreadAgent",
    "ThreadChange",
    "ThreadChangeKind",
    "Tokens",
    "ToolCall",
    "ToolCallDelta",
    "Turns",
    "Usage",
    "UsageSummary",
    "VideoPart",
    "Violation",
    "continues",
    "is_redacted",
]
