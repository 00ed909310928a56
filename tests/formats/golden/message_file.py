"""Payloads of message-file, and what is written when the contents of a stored file grow."""

from __future__ import annotations

from typing import Any

from chatledger.formats.message_file import (
    CODEC,
    CodeExecutionOutputBuilder,
    FunctionCallBuilder,
    MessageBuilder,
    MessageOutputBuilder,
)
from chatledger.message_file.contents import Changes, Contents, find_changes
from chatledger.models import ChatMessage
from tests.formats.golden import Cases
from tests.formats.golden.foreign import FOREIGN

OUTPUT = {"content": "Cold.", "mime_type": "text/plain", "nonce": "n1"}
PIXEL = {"content": "QQ==", "mime_type": "image/png", "nonce": "n2"}
RAN = {
    "mime_type": "text/plain",
    "nonce": "n3",
    "stdout": "4\n",
    "stderr": "slow",
    "status": 1,
    "duration": 0.5,
    "lang": "bash",
}
COMMON: dict[str, Any] = {"timeout": None, "history": [], "heading_level": None}
CALL = {"name": "call_1", **COMMON, "type": "function_call", "function_name": "weather", "args": {"city": "Oslo"}}
SAID: dict[str, Any] = {"name": "message_1", **COMMON, "type": "message", "content": "Oslo?", "mime_type": "text/plain"}

STRICT: dict[str, Any] = {
    "plain items": [{**SAID, "outputs": [OUTPUT], "agent_name": None, "function_calls": []}],
    "items with more": [
        {**SAID, "timeout": 1.5, "history": [{"x": 1}], "heading_level": 2, "agent_name": "ada", "outputs": [OUTPUT]},
        {**SAID, "history": "summary", "mime_type": "text/markdown"},
        {**SAID, "content": "QQ==", "mime_type": "image/png"},
        {"type": "message", "content": "short"},
    ],
    "outputs": [{**SAID, "outputs": [OUTPUT, PIXEL, RAN]}],
    "calls": [
        {**SAID, "function_calls": [{**CALL, "outputs": [OUTPUT, RAN]}, {**CALL, "name": None, "outputs": [OUTPUT]}]},
        {**CALL, "name": "call_2", "timeout": 3},
    ],
}


def _grown(messages: list[ChatMessage], *, old: bool = False) -> Changes:
    """The changes after each item of stored messages got an output and a new item stands behind them."""
    stored = [message.model_copy(update={"seq": seq, "branch": 1}) for seq, message in enumerate(messages, 1)]
    contents = Contents.read(stored)
    if old:
        contents.add(MessageBuilder().with_name("last").with_content("later").build())
        stored += find_changes(contents.entries, 1, len(stored)).messages
        stored = [message.model_copy(update={"seq": seq, "branch": 1}) for seq, message in enumerate(stored, 1)]
        contents = Contents.read(stored)
    for number, entry in enumerate(contents.entries):
        output = MessageOutputBuilder().with_content("more").with_nonce(f"more_{number}").build()
        entry.item.add_output(output)
        entry.item.add_output(CodeExecutionOutputBuilder.build(_ran(number)))
    call = FunctionCallBuilder().with_function_name("tides").with_name(f"call_{old}").build()
    contents.add(MessageBuilder().with_name("new").with_content("new").with_function_call(call).build())
    return find_changes(contents.entries, 1, len(stored))


def _ran(number: int) -> CodeExecutionOutputBuilder:
    builder = CodeExecutionOutputBuilder().with_stdout("4")
    builder._with(nonce=f"ran_{number}")
    return builder


def cases() -> Cases:
    built = MessageBuilder().with_content("Oslo?").with_name("message_1")
    built.with_output(MessageOutputBuilder().with_content("Cold.").with_nonce("n1").build())
    built.with_function_call(FunctionCallBuilder().with_function_name("weather").with_name("call_1").build())
    own = CODEC.decode(STRICT["calls"]).messages
    found: dict[str, Any] = {name: CODEC.decode(payload).messages for name, payload in STRICT.items()}
    found["objects"] = CODEC.decode([built.build()]).messages
    found["of other formats"] = CODEC.decode(CODEC.encode(FOREIGN).payload).messages
    grown = {"own items": _grown(own), "old items": _grown(own, old=True), "other formats' items": _grown(FOREIGN)}
    for name, changes in grown.items():
        found[f"{name} that grew"] = changes.messages
        found[f"{name} that grew, beside"] = changes.beside
    return found
