"""Small things for tests of message files."""

from __future__ import annotations

from typing import Any

from chatledger.formats.message_file import CodeExecutionOutputBuilder, MessageOutput, MessageOutputBuilder
from chatledger.message_file import MessageFile


def said(content: str, nonce: str | None = None) -> MessageOutput:
    return MessageOutputBuilder().with_content(content).with_nonce(nonce).build()


def ran(stdout: str) -> MessageOutput:
    return CodeExecutionOutputBuilder().with_stdout(stdout).with_status(1).with_duration(0.5).build()


def names(file: MessageFile) -> list[str | None]:
    return [item.name for item in file.get_items()]


def dicts(file: MessageFile) -> list[dict[str, Any]]:
    return [item.to_dict() for item in file.get_items()]


def contents(file: MessageFile) -> list[list[str]]:
    """The contents of the outputs of each item."""
    return [[output.content for output in item.outputs] for item in file.get_items()]
