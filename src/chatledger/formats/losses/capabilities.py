"""What each format can express, found by trial.

Each thing has a small sample conversation, which is written in the format. The format expresses the thing if the sample
has no losses but those of the same conversation without it. Nothing is declared, so nothing can be out of date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from chatledger.formats.losses import codes
from chatledger.formats.losses.measure import losses_of
from chatledger.formats.registry import format_names, get_codec
from chatledger.models import (
    AudioPart,
    ChatMessage,
    FilePart,
    ImagePart,
    Part,
    TextPart,
    ThinkPart,
    ToolCall,
    VideoPart,
)

_PIXEL = "iVBORw0KGgo="
_CALL = ToolCall(id="call_a", name="weather", arguments='{"city":"Oslo"}')
_OTHER = ToolCall(id="call_b", name="tides", arguments='{"city":"Oslo"}')


@dataclass(frozen=True, slots=True)
class Sample:
    """Conversations that contain a thing; the one with the best result counts. `needs` names another thing that this
    thing depends on.
    """

    alternatives: Sequence[Sequence[ChatMessage]]
    needs: str | None = None


Expression: TypeAlias = Literal["yes", "form", "no"]
"""Complete; in another form (split into messages, joined, a URL instead of data); or lost."""

_FORM_ONLY = frozenset(
    {codes.CONTENT_FORM, codes.ARGUMENTS_FORM, codes.MEDIA_FORM, codes.REASONING_FORM, codes.SPLIT, codes.MERGED}
)
_BEST_FIRST: Sequence[Expression] = ("yes", "form", "no")


def capabilities(names: Sequence[str] | None = None) -> dict[str, dict[str, Expression]]:
    """How well each format expresses each thing, in the order of SAMPLES. None means all formats."""
    return {name: _expressed(name) for name in (format_names() if names is None else names)}


def _expressed(name: str) -> dict[str, Expression]:
    losses: dict[str, Expression] = {}
    always = _lost(name, _PLAIN)
    for thing, sample in SAMPLES.items():
        levels = [_level(_lost(name, messages) - always) for messages in sample.alternatives]
        best = min(levels, key=_BEST_FIRST.index)
        losses[thing] = best if sample.needs is None else max(best, losses[sample.needs], key=_BEST_FIRST.index)
    return losses


def _level(lost: set[tuple[str, str]]) -> Expression:
    if not lost:
        return "yes"
    return "form" if {code for code, _ in lost} <= _FORM_ONLY else "no"


def _lost(name: str, messages: Sequence[ChatMessage]) -> set[tuple[str, str]]:
    return {(loss.code, loss.path) for loss in losses_of(get_codec(name), messages)}


def _talk(*messages: tuple[str, Any], **last: Any) -> list[ChatMessage]:
    """Messages from roles and contents, numbered as if they were stored. `last` has more fields of the last message."""
    built = [ChatMessage(role=role, content=content) for role, content in messages]
    built[-1] = built[-1].model_copy(update=last)
    return [message.model_copy(update={"seq": seq}) for seq, message in enumerate(built, 1)]


def _asked(*calls: ToolCall, text: str | None = None, **result: Any) -> list[ChatMessage]:
    """A question, calls, their results with the fields of `result`, the answer."""
    result_message = {"role": "tool", "content": "4 °C", **result}
    messages = [
        ChatMessage(role="user", content="Oslo?"),
        ChatMessage(role="assistant", content=text, tool_calls=list(calls)),
        *(ChatMessage.model_validate({**result_message, "tool_call_id": call.id}) for call in calls),
        ChatMessage(role="assistant", content="Cold."),
    ]
    return [message.model_copy(update={"seq": seq}) for seq, message in enumerate(messages, 1)]


def _asked_somehow(
    *calls: ToolCall, text: str | None = None, objects: bool = True, **result: Any
) -> list[list[ChatMessage]]:
    """The same conversation in the variants of all formats: arguments as text or as an object, no content or an empty
    content, results with or without the name of their call.
    """
    as_objects = [call.model_copy(update={"arguments": {"city": "Oslo"}}) for call in calls]
    texts = (None, "") if text is None else (text,)
    ways = [(call_set, beside) for call_set in ((calls, as_objects) if objects else (calls,)) for beside in texts]
    asked = [_asked(*call_set, text=beside, **result) for call_set, beside in ways]
    return [*asked, *map(_with_names, asked)]


def _with_names(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    names = {call.id: call.name for message in messages for call in message.tool_calls or ()}
    return [
        message.model_copy(update={"name": names[message.tool_call_id]}) if message.role == "tool" else message
        for message in messages
    ]


def _user(part: Part) -> list[ChatMessage]:
    return _talk(("user", [TextPart(text="this?"), part]), ("assistant", "Yes."))


def _answer(**fields: Any) -> list[ChatMessage]:
    return _talk(("user", "Oslo?"), ("assistant", "Cold."), **fields)


_PLAIN = _answer()
_NOT_JSON = _CALL.model_copy(update={"arguments": "{city"})
_CALLS = "tool calls and results"
_TEXTS = "several texts in a message"
_NORTH = ThinkPart(text="North.")
_SIGNED = ThinkPart(text="North.", signature="c2ln")
_COLD = TextPart(text="Cold.")

SAMPLES: Mapping[str, Sample] = {
    "system messages": Sample([_talk(("system", "Be short."), ("user", "Oslo?"))]),
    "developer messages": Sample([_talk(("developer", "Be short."), ("user", "Oslo?"))]),
    "names of speakers": Sample([[_PLAIN[0].model_copy(update={"name": "ada"}), _PLAIN[1]]]),
    _TEXTS: Sample([_user(TextPart(text="so?"))]),
    "images by URL": Sample([_user(ImagePart(url="https://example.org/a.png"))], _TEXTS),
    "images as data": Sample(
        [
            _user(ImagePart(data=_PIXEL, mime_type="image/png")),
            _user(ImagePart(url=f"data:image/png;base64,{_PIXEL}")),
        ],
        _TEXTS,
    ),
    "audio": Sample([_user(AudioPart(data=_PIXEL, mime_type="audio/wav"))], _TEXTS),
    "video": Sample([_user(VideoPart(url="https://example.org/a.mp4"))], _TEXTS),
    "files": Sample(
        [
            _user(FilePart(data=_PIXEL, mime_type="application/pdf", name="a.pdf")),
            _user(FilePart(url=f"data:application/pdf;base64,{_PIXEL}", name="a.pdf")),
            _user(FilePart(url=f"data:application/pdf;base64,{_PIXEL}")),
            _user(FilePart(url="https://example.org/a.pdf")),
        ],
        _TEXTS,
    ),
    "reasoning": Sample([_answer(reasoning="North."), _answer(content=[_NORTH, _COLD]), _answer(reasoning=[_NORTH])]),
    "signatures of reasoning": Sample([_answer(content=[_SIGNED, _COLD]), _answer(reasoning=[_SIGNED])], "reasoning"),
    _CALLS: Sample(_asked_somehow(_CALL)),
    "several calls in a message": Sample(_asked_somehow(_CALL, _OTHER), _CALLS),
    "text beside calls": Sample(_asked_somehow(_CALL, text="Wait."), _CALLS),
    "arguments that are not JSON": Sample(_asked_somehow(_NOT_JSON, objects=False), _CALLS),
    "results that are errors": Sample(_asked_somehow(_CALL, is_error=True), _CALLS),
    "images in results": Sample(
        [
            *_asked_somehow(_CALL, content=[ImagePart(data=_PIXEL, mime_type="image/png")]),
            *_asked_somehow(_CALL, content=[ImagePart(url=f"data:image/png;base64,{_PIXEL}")]),
        ],
        _CALLS,
    ),
    "custom messages": Sample([_talk(("user", "Oslo?"), ("assistant", "Cold."), ("custom", "Saved."))]),
    "the run id": Sample([_answer(run_id="run-1")]),
    "response metadata": Sample([_answer(response_metadata={"model": "m"})]),
}
