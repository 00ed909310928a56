"""The codes of losses, the same for all formats, and the paths that locate a loss.

    Loss(code, seq, path)       seq is the position of the message that was encoded, path a place in it:

    ""                          the message as a whole
    role, content, custom_data  a field
    content[2], tool_calls[0]   a part, a call; `reasoning` likewise
    content[2].signature        a field of a part or a call; url, data and mime_type of a medium are reported together

A path means that the value there, and all below it, changed or moved. Everything without a path came back equal,
value by value and in key order. If a text is joined into another form of the content, it is still there, so only the
form is reported. A lost signature is reported in addition to the reasoning that it is lost with.

message_id, thread_id, branch, seq, created_at, violations and format are never compared: the ledger assigns them, or
they identify the writer. A residual is lost only if the message had one: reading may add its own.
"""

from __future__ import annotations

LEFT_OUT = "left-out"
MADE_UP = "made-up"
SPLIT = "split"
MERGED = "merged"
ORDER = "order"
ROLE = "role"
NAME = "name"
CONTENT_FORM = "content-form"
TEXT = "text"
MEDIA = "media"
MEDIA_FORM = "media-form"
OPAQUE = "opaque"
REASONING = "reasoning"
REASONING_FORM = "reasoning-form"
SIGNATURE = "signature"
EXTRAS = "extras"
CALLS = "calls"
CALL_ID = "call-id"
ARGUMENTS = "arguments"
ARGUMENTS_FORM = "arguments-form"
IS_ERROR = "is-error"
STATE = "state"
RUN_ID = "run-id"
RESPONSE_METADATA = "response-metadata"
CUSTOM_DATA = "custom-data"
RESIDUAL = "residual"

CODES: dict[str, str] = {
    LEFT_OUT: "the message is not written",
    MADE_UP: "something is added that no message has: a message (reported at the next one), a part or a call",
    SPLIT: "the message is written as several messages",
    MERGED: "the message is joined with the one before it",
    ORDER: "the message, or a part of it, is in another place",
    ROLE: "the role is changed",
    NAME: "the name of a message or of a call is changed or left out",
    CONTENT_FORM: "the content changes between null, a text and a list of parts",
    TEXT: "a text is changed or left out",
    MEDIA: "an image, audio, video or file, or one of its fields, is changed or left out",
    MEDIA_FORM: "a medium is written in another form: data and a type become a data URI, or the reverse",
    OPAQUE: "a part that only its own format can read is left out",
    REASONING: "reasoning is left out, or its text is changed",
    REASONING_FORM: "reasoning has the same text in another place or form: a field, or parts of the content",
    SIGNATURE: "the signature of reasoning is left out",
    EXTRAS: "the extra keys of a part or of a call are changed or left out",
    CALLS: "a tool call is left out; or null becomes an empty list of calls, or the reverse",
    CALL_ID: "the id of a call, or the call id of a result, is made up, copied from the call or left out",
    ARGUMENTS: "the arguments of a call are changed",
    ARGUMENTS_FORM: "the arguments of a call are the same JSON in another form: a text, an object, or null if empty",
    IS_ERROR: "the error flag of a result is changed or left out",
    STATE: "an incomplete message reads as complete",
    RUN_ID: "the run of the message is left out",
    RESPONSE_METADATA: "response_metadata is changed or left out",
    CUSTOM_DATA: "custom_data is changed or left out",
    RESIDUAL: "the residual, which only the message's own format can read, is left out",
}
"""The meaning of each code."""

FIELDS: dict[str, str] = {
    "role": ROLE,
    "name": NAME,
    "tool_call_id": CALL_ID,
    "is_error": IS_ERROR,
    "state": STATE,
    "run_id": RUN_ID,
    "response_metadata": RESPONSE_METADATA,
    "custom_data": CUSTOM_DATA,
}
"""The fields of a message that are compared as a whole, with the code of a difference."""
