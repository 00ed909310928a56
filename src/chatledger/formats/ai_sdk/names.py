"""Names that several modules of the format share: of parts, of states, of residual sections."""

from __future__ import annotations

from chatledger.models.json import JsonValue

NAME = "ai-sdk"
Source = dict[str, JsonValue]

ROLES = ("system", "user", "assistant")

TEXT = "text"
REASONING = "reasoning"
FILE = "file"
STEP_START = "step-start"
TOOL = "tool-"
"""The beginning of the type of a tool part; the name of the tool follows."""
DYNAMIC_TOOL = "dynamic-tool"
"""The type of the part of a tool that the client does not know; the key `toolName` has its name."""
DATA = "data-"

INPUT_STREAMING = "input-streaming"
INPUT = "input-available"
REQUESTED = "approval-requested"
RESPONDED = "approval-responded"
OUTPUT = "output-available"
ERROR = "output-error"
DENIED = "output-denied"
OPEN = (INPUT_STREAMING, INPUT, REQUESTED, RESPONDED)
"""The states of a call without a result."""
FINISHED = (OUTPUT, ERROR, DENIED)

# The sections of a residual, besides `continues`.
ID = "id"
"""The id of the UI message; on its first row."""
HEAD = "head"
"""Of the UI message around its parts; on its first row."""
STEP = "step"
"""Of the `step-start` before the parts of a row; False if there was none."""
PARTS = "parts"
"""Of the parts by index."""
CALLS = "calls"
"""Of the calls by index."""
CALLS_AT = "calls_at"
"""The positions of the calls among the parts, if they were not after all others."""
CALL = "call"
"""On a result: the index of its call in the row of the step."""
PART = "part"
"""On a result: of the whole tool part."""
WHOLE = "whole"
"""True: the row is a whole message that only lenient rules accept, and its content is that message."""
DYNAMIC = "dynamic"
"""Inside the section of a call or a result: true if the part was a `dynamic-tool`."""
AS_JSON = "json"
"""Inside the section of a result: true if the text is the JSON of the output."""
