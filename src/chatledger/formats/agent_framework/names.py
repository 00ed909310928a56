"""Names that several modules of the format share: of keys, of contents, of residual sections."""

from __future__ import annotations

from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue

NAME = "agent-framework"
Source = dict[str, JsonValue]

TYPE = "type"
MESSAGE = "message"
CONTENTS = "contents"
AUTHOR = "author_name"
PROPERTIES = "additional_properties"

TEXT = "text"
THINKING = "text_reasoning"
DATA = "data"
URI = "uri"
CALL = "function_call"
RESULT = "function_result"

# The sections of a residual, besides `keys` and `extra` of `wire.residual` in each of them.
HEAD = "head"
"""Of the message around its contents; on the first row of each message."""
PARTS = "parts"
"""Of the contents that are parts, or of the items of a result, by index."""
CALLS = "calls"
"""Of the calls, by index."""
CALLS_AT = "calls_at"
"""The positions of the calls, if they did not stand after all other contents."""
ANSWER = "answer"
"""Of the content that a result is."""
AS_JSON = "json"
"""Inside a section: true if the text is JSON that spells the result."""

ROLES = ("system", "user", "assistant", "developer")
"""The roles that are the same here and in the ledger. A message of another role, tool aside, is a custom one."""


def own_residual(message: ChatMessage) -> JsonValue:
    """The residual of a message that came in this format; None for any other message."""
    return message.residual if message.format == NAME else None


def head_of(role: str, contents: list[JsonValue], author: str | None) -> Source:
    """A message around its contents, as the framework writes it without the fields that are None."""
    named: Source = {} if author is None else {AUTHOR: author}
    return {TYPE: MESSAGE, "role": role, CONTENTS: contents, **named, PROPERTIES: {}}
