"""The codes of losses, one set for all formats, and the paths that say where a loss is.

    Loss(code, seq, path)       seq is that of the message that was to be written, path a place in it:

    ""                          the message as a whole
    role, content, custom_data  a field
    content[2], tool_calls[0]   a part, a call; `reasoning` likewise
    content[2].signature        a field of a part or a call; of a medium `media-form` stands for url, data and mime_type

A path says that the value there, and all below it, changed or moved. Everything that no path names came back equal,
value by value with key order. A text that is joined into another form of the content is still there, so only the form
is named. A signature is named beside the reasoning that it is lost with.

message_id, thread_id, branch, seq, created_at, violations and format are never compared: the ledger assigns them, or
they name the writer. A residual counts as lost only if the message had one: reading may add its own.
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
    LEFT_OUT: "the message is not written at all",
    MADE_UP: "something is written that no message said: a message (at the one that follows it), a part, a call",
    SPLIT: "the message is written as several",
    MERGED: "the message is written into the one before it",
    ORDER: "the message stands in another place; or the part does in its message",
    ROLE: "the role is another one",
    NAME: "the name, of a message or of a call, is another one or none",
    CONTENT_FORM: "null, a text, a list of parts: the content is written as another of these",
    TEXT: "a text is not there as it was",
    MEDIA: "an image, audio, video or file is left out or written as something else; or one of its fields is",
    MEDIA_FORM: "a medium is said in another way: data with its type as a data URI, or the other way round",
    OPAQUE: "a part that only its own format understands is left out",
    REASONING: "reasoning is left out, or its text is another one",
    REASONING_FORM: "reasoning stands in another place or form with the same text: a field, or parts of the content",
    SIGNATURE: "the signature of reasoning is left out",
    EXTRAS: "what its source kept beside a part or a call is left out",
    CALLS: "a tool call is left out; or no calls at all is written as an empty list, or the other way round",
    CALL_ID: "the id of a call, or that which a result names, is made up, taken from the call, or left out",
    ARGUMENTS: "the arguments of a call are others",
    ARGUMENTS_FORM: "the arguments of a call are the same JSON in another spelling: text, object, or none if empty",
    IS_ERROR: "whether a result is an error is not said, or is another one",
    STATE: "the message reads as complete although it was not",
    RUN_ID: "the run of the message is not said",
    RESPONSE_METADATA: "response_metadata is another one or none",
    CUSTOM_DATA: "custom_data is another one or none",
    RESIDUAL: "what only the message's own format understands is left out",
}
"""Each code and what it says."""

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
"""The fields of a message that are equal or not, as a whole."""
