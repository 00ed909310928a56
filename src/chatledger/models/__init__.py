"""Frozen models of the ledger's objects. They know neither SQL nor the formats of providers."""

from chatledger.models.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from chatledger.models.erasures import Erasure, ErasureKind
from chatledger.models.feedback import Feedback, FeedbackSummary
from chatledger.models.kv import KvValue
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
from chatledger.models.pages import Appended, FormattedHistory, History, Loss, Page, Repair
from chatledger.models.partials import PartialMessage
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
from chatledger.models.revisions import ChangeKind, Revision
from chatledger.models.runs import Run, RunStatus, Usage
from chatledger.models.thread_changes import ThreadChange, ThreadChangeKind
from chatledger.models.threads import Alternative, Branch, Deleted, RulesLevel, Thread

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
    "Deleted",
    "Delta",
    "Erasure",
    "ErasureKind",
    "Feedback",
    "FeedbackSummary",
    "FilePart",
    "FormattedHistory",
    "History",
    "ImagePart",
    "KvValue",
    "Limits",
    "Loss",
    "MediaPart",
    "Metrics",
    "OpaquePart",
    "Page",
    "Part",
    "PartialMessage",
    "ReasoningDelta",
    "Repair",
    "Revision",
    "RulesLevel",
    "Run",
    "RunStatus",
    "State",
    "TextDelta",
    "TextPart",
    "ThinkPart",
    "Thread",
    "ThreadChange",
    "ThreadChangeKind",
    "ToolCall",
    "ToolCallDelta",
    "Usage",
    "VideoPart",
    "Violation",
    "continues",
    "is_redacted",
]
