"""Reasoning, both ways: an item with its summary, its text and its encrypted content is one thought with a signature.

The texts are joined by a blank line. If there are several, the residual keeps their lengths, to split them again.
"""

from __future__ import annotations

from itertools import accumulate

from chatledger.models import ThinkPart
from chatledger.models.json import JsonValue

_SUMMARY, _CONTENT = "summary", "content"
_TYPES = {_SUMMARY: "summary_text", _CONTENT: "reasoning_text"}
_BETWEEN = "\n\n"


def read_thought(source: dict[str, JsonValue]) -> tuple[ThinkPart, dict[str, JsonValue]]:
    """The thought, and the lengths of its texts for the residual, which also keeps other values."""
    summary, content = (_texts(source.get(key), kind) for key, kind in _TYPES.items())
    signature = source.get("encrypted_content")
    thought = ThinkPart(
        text=_BETWEEN.join([*summary, *content]), signature=signature if isinstance(signature, str) else None
    )
    if len(summary) < 2 and not content:
        return thought, {}
    return thought, {_SUMMARY: [len(text) for text in summary], _CONTENT: [len(text) for text in content]}


def write_thought(thought: ThinkPart, lengths: JsonValue = None) -> dict[str, JsonValue]:
    summary, content = _cut(thought.text, lengths)
    wire: dict[str, JsonValue] = {"type": "reasoning", _SUMMARY: _entries(_SUMMARY, summary)}
    if content:
        wire[_CONTENT] = _entries(_CONTENT, content)
    if thought.signature is not None:
        wire["encrypted_content"] = thought.signature
    return wire


def _texts(entries: JsonValue, kind: str) -> list[str]:
    """The texts of a list of plain entries; none if the list holds anything else."""
    if not isinstance(entries, list) or not all(_is_text(entry, kind) for entry in entries):
        return []
    return [entry["text"] for entry in entries]


def _is_text(entry: JsonValue, kind: str) -> bool:
    return isinstance(entry, dict) and entry.get("type") == kind and isinstance(entry.get("text"), str)


def _entries(key: str, texts: list[str]) -> list[JsonValue]:
    return [{"type": _TYPES[key], "text": text} for text in texts]


def _cut(text: str, lengths: JsonValue) -> tuple[list[str], list[str]]:
    """(summary, content). If the text was edited, so that the lengths do not fit, all of it is the summary."""
    wanted = [_lengths(lengths, key) for key in _TYPES]
    flat = [length for some in wanted for length in some]
    ends = list(accumulate(flat, lambda end, length: end + len(_BETWEEN) + length))
    texts = [text[end - length : end] for end, length in zip(ends, flat, strict=True)]
    if not flat or _BETWEEN.join(texts) != text:
        return [text] if text else [], []
    return texts[: len(wanted[0])], texts[len(wanted[0]) :]


def _lengths(lengths: JsonValue, key: str) -> list[int]:
    values = lengths.get(key) if isinstance(lengths, dict) else None
    known = isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
    return list(values) if known and values is not None else []
