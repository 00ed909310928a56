"""Messages as the templates show them: texts as HTML or cut, media with their addresses, calls beside their results."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup

from chatledger.models import ChatMessage, Feedback, OpaquePart, Run, TextPart, ThinkPart, ToolCall
from chatledger.models.parts import MediaPart
from chatledger.server.page.html import encodable, pretty
from chatledger.server.page.markdown import to_html, weight
from chatledger.server.page.media import content_of, parts_of

MARKDOWN = 20_000
"""The longest text that is read as Markdown, in characters."""
ELEMENTS, ELEMENTS_OF_PAGE = 4_000, 10_000
"""The most elements that such a text may have, and those of a page together. 1,000 take up to 30 ms."""
MARKDOWN_OF_PAGE = 50_000
"""The most characters of a page that are read as Markdown, from its newest message on. Older ones are plain text."""
TEXT = 100_000
"""The longest part of a text that a page shows, in characters."""
PARTS = 200
"""The most parts, and the most calls, of a message that a page shows."""
_FOLDED = (15, 1_200)
"""Lines and characters beyond which arguments and results are folded."""

Source = Callable[[ChatMessage, int, MediaPart], str | None]
"""The address of a medium that a part itself holds, by its message and its index; None for a place without one."""


@dataclass(frozen=True, slots=True)
class ShownText:
    plain: str
    html: Markup | None = None
    """The text as HTML, if it was read as Markdown."""
    missing: int = 0
    """The number of characters that are left out at the end."""
    is_code: bool = False

    @property
    def is_long(self) -> bool:
        lines, characters = _FOLDED
        return len(self.plain) > characters or self.plain.count("\n") >= lines

    @property
    def first_line(self) -> str:
        return self.plain.lstrip().partition("\n")[0][:100]


@dataclass(frozen=True, slots=True)
class Medium:
    kind: str
    """`image`, `audio`, `video`, or `file` for a link."""
    name: str
    source: str | None
    """Where the browser gets it from; None if there is nothing to show."""
    elsewhere: str | None
    """Its address on another site, of which the page only makes a link."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A message to show."""

    message: ChatMessage
    blocks: Sequence[ShownText | Medium]
    reasoning: ShownText | None
    calls: Sequence[ShownCall]
    left_out: int
    """The number of parts and calls that are not shown."""
    run: Run | None = None
    scores: Sequence[Feedback] = ()
    alternatives: Sequence[tuple[int, bool]] = ()


@dataclass(frozen=True, slots=True)
class ShownCall:
    call: ToolCall
    arguments: ShownText
    result: Shown | None


@dataclass(slots=True)
class Beside:
    """What a page shows beside its messages."""

    runs: Mapping[str, Run] = field(default_factory=dict)
    scores: Mapping[str | None, Sequence[Feedback]] = field(default_factory=dict)
    """By the id of the message."""
    newest_scores: int | None = None
    """How many of the scores were read, the newest; None for all."""
    alternatives: Mapping[int, Sequence[tuple[int, bool]]] = field(default_factory=dict)
    """By the position of the message."""


class Renderer:
    """Makes messages ready for a template. `limit` is the most characters of a text; None shows all."""

    def __init__(self, source: Source, *, limit: int | None = TEXT) -> None:
        self._source = source
        self._limit = limit
        self._markdown_left = (MARKDOWN_OF_PAGE, ELEMENTS_OF_PAGE) if limit is not None else None

    def show(self, messages: Sequence[ChatMessage], beside: Beside | None = None) -> list[Shown]:
        """The messages in order. A result is part of the message whose call it answers, if that is among them."""
        beside = beside or Beside()
        calls = {(message.seq, index) for message in messages for index in range(len(message.tool_calls or ()))}
        results = {
            (result.answers.seq, result.answers.index): result
            for result in messages
            if result.answers is not None and (result.answers.seq, result.answers.index) in calls
        }
        within = {result.seq for result in results.values()}
        # The newest first: what a reader sees when the page opens is read as Markdown before the rest.
        shown = [self._message(message, results, beside) for message in reversed(messages) if message.seq not in within]
        return shown[::-1]

    def _message(self, message: ChatMessage, results: Mapping[tuple[int, int], ChatMessage], beside: Beside) -> Shown:
        parts, calls = parts_of(message), message.tool_calls or []
        blocks = [block for at, part in enumerate(parts[:PARTS]) for block in self._part(message, at, part)]
        if isinstance(message.content, str) and message.content:
            blocks = [self._content(message, message.content)]
        shown_calls = []
        for at, call in enumerate(calls[:PARTS]):
            result = results.get((message.seq or 0, at))
            shown = None if result is None else self._message(result, {}, beside)
            shown_calls.append(ShownCall(call, self._code(call.arguments), shown))
        return Shown(
            message,
            blocks,
            self._plain(message.reasoning_text) if message.reasoning_text else None,
            shown_calls,
            max(0, len(parts) - PARTS) + max(0, len(calls) - PARTS),
            beside.runs.get(message.run_id) if message.run_id is not None else None,
            beside.scores.get(message.message_id, ()) if message.message_id is not None else (),
            beside.alternatives.get(message.seq or 0, ()),
        )

    def _part(self, message: ChatMessage, at: int, part: Any) -> list[ShownText | Medium]:
        if isinstance(part, ThinkPart):
            return []  # `reasoning_text` has it
        if isinstance(part, TextPart):
            return [self._content(message, part.text)] if part.text else []
        if isinstance(part, MediaPart):
            return [self._medium(message, at, part)]
        assert isinstance(part, OpaquePart)
        return [self._code(part.value)]

    def _content(self, message: ChatMessage, text: str) -> ShownText:
        """An answer is Markdown. What people and programs write stays as it is, with its line ends."""
        if message.role == "tool":
            return self._code(text)
        if message.role != "assistant" or len(text) > MARKDOWN or not self._may_hold(len(text), weight(text)):
            return self._plain(text)
        return ShownText(text, to_html(encodable(text)))

    def _may_hold(self, characters: int, elements: int) -> bool:
        """Whether a text may be read as Markdown. If so, it counts for the page."""
        if elements > ELEMENTS or self._markdown_left is None:
            return elements <= ELEMENTS
        left = (self._markdown_left[0] - characters, self._markdown_left[1] - elements)
        if min(left) < 0:
            return False
        self._markdown_left = left
        return True

    def _plain(self, text: str, *, is_code: bool = False) -> ShownText:
        shown = text if self._limit is None else text[: self._limit]
        return ShownText(shown, missing=len(text) - len(shown), is_code=is_code)

    def _code(self, value: Any) -> ShownText:
        """JSON, indented; a text that is no JSON as it is."""
        if value is None:
            return ShownText("", is_code=True)
        if isinstance(value, str) and len(value) <= TEXT and value.lstrip()[:1] in ("{", "["):
            with contextlib.suppress(ValueError, RecursionError):
                value = json.loads(value)
        text = value if isinstance(value, str) else pretty(value)
        return self._plain(text, is_code=True)

    def _medium(self, message: ChatMessage, at: int, part: MediaPart) -> Medium:
        name = part.name or part.id or part.kind  # type: ignore[attr-defined]
        content = content_of(part)
        if content is not None:
            return Medium(content.shown_as or "file", name, self._source(message, at, part), None)
        elsewhere = part.url if part.url and part.url.partition(":")[0].lower() in ("http", "https") else None
        return Medium("file", name, None, elsewhere)
