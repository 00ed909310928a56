"""A conversation as text for a terminal: each call with its result beneath it, and the broken rules.

All stored text passes through `escape` and is never interpreted as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from chatledger.cli.escape import escape, one_line
from chatledger.cli.output import moment, plural
from chatledger.models import ChatMessage, OpaquePart, Part, TextPart, ThinkPart, Thread, ToolCall
from chatledger.models.json import dumps
from chatledger.rules import Fold, Tip

STYLES = {"system": "magenta", "developer": "magenta", "user": "bold cyan", "assistant": "bold green", "tool": "blue"}
MAX_LINES = 20
MAX_CHARACTERS = 1_500
MARGIN = "     "


def render(console: Console, thread: Thread, messages: Sequence[ChatMessage], *, full: bool) -> None:
    for line in _lines(thread, messages, full=full):
        console.print(line)


def _lines(thread: Thread, messages: Sequence[ChatMessage], *, full: bool) -> Iterator[Text]:
    yield from _header(thread)
    results = results_by_call(messages)
    beside = {result.seq for result in results.values()}
    for message in messages:
        if message.seq not in beside:
            yield Text("")
            yield from _message(message, results, full=full)


def results_by_call(messages: Sequence[ChatMessage]) -> dict[tuple[int, int], ChatMessage]:
    """The result of each call, keyed by the call's (seq, idx). The rules pair the two, since ids may repeat."""
    fold, results = Fold(Tip()), dict[tuple[int, int], ChatMessage]()
    for message in messages:
        fold.last_seq = (message.seq or 1) - 1
        judged = fold.judge(message, branch=0)
        if judged.answers is not None:
            results[judged.answers.seq, judged.answers.idx] = message
    return results


def _header(thread: Thread) -> Iterator[Text]:
    yield Text(f"thread {one_line(thread.thread_id)}", style="bold")
    parts = [f'"{one_line(thread.title)}"'] if thread.title else []
    parts += [f"user {one_line(thread.user_id)}"] if thread.user_id is not None else []
    parts += [plural(thread.message_count, "message"), f"created {moment(thread.created_at)} UTC"]
    yield Text(" · ".join(parts), style="dim")


def _message(message: ChatMessage, results: dict[tuple[int, int], ChatMessage], *, full: bool) -> Iterator[Text]:
    yield _heading(message)
    if message.reasoning is not None:
        yield from _block(message.reasoning_text, "thinks: ", full=full, style="dim italic")
    for text, style in _content(message):
        yield from _block(text, "", full=full, style=style)
    yield from _violations(message, MARGIN)
    for idx, call in enumerate(message.tool_calls or ()):
        yield from _call(call, results.get((message.seq or 0, idx)), full=full)


def _heading(message: ChatMessage) -> Text:
    line = Text(f"{message.seq:>3}  ")
    line.append(one_line(message.role), style=STYLES.get(message.role, "yellow"))
    parts = [one_line(message.name)] if message.name else []
    parts += [f"for call {_short_id(message.tool_call_id)}"] if message.tool_call_id is not None else []
    parts += [message.state] if message.state != "complete" else []
    parts += ["error"] if message.is_error else []
    parts += [f"run {_short_id(message.run_id)}"] if message.run_id is not None else []
    line.append("".join(f" · {word}" for word in [*parts, moment(message.created_at)] if word), style="dim")
    return line


def _short_id(id_: str | None) -> str:
    text = one_line(id_ or "")
    return text if len(text) <= 40 else text[:39] + "…"


def _content(message: ChatMessage) -> Iterator[tuple[str, str]]:
    """Each part as (text, style). Media appear only by name."""
    if isinstance(message.content, str):
        if message.content or not message.tool_calls:
            yield (message.content, "") if message.content else ("(empty)", "dim")
        return
    for part in message.content or ():
        yield _part(part)


def _part(part: Part) -> tuple[str, str]:
    if isinstance(part, TextPart):
        return part.text, ""
    if isinstance(part, ThinkPart):
        return part.text, "dim italic"
    if isinstance(part, OpaquePart):
        return f"[{part.type or 'unknown part'}] {dumps(part.value)}", "dim"
    where = part.url or part.name or part.id or (f"{len(part.data):,} characters of data" if part.data else "")
    return f"[{part.kind}] {where if len(where) <= 100 else where[:99] + '…'}", "dim"


def _call(call: ToolCall, result: ChatMessage | None, *, full: bool) -> Iterator[Text]:
    arguments = call.arguments if isinstance(call.arguments, str) else dumps(call.arguments)
    shown = "" if call.arguments is None else arguments
    yield from _block(f"{call.name} {shown}", "→ ", full=full, style="green")
    if result is None:
        yield Text(f"{MARGIN}  ← no result", style="bold red")
        return
    state = "" if result.state == "complete" else f" ({result.state})"
    mark = f"  ← {result.seq}{' error' if result.is_error else ''}{state}: "
    text = "\n".join(text for text, _ in _content(result))
    yield from _block(text, mark, full=full, style="red" if result.is_error else "blue")
    yield from _violations(result, MARGIN + "  ")


def _violations(message: ChatMessage, margin: str) -> Iterator[Text]:
    for violation in message.violations:
        yield Text(f"{margin}! {violation.rule}: {one_line(violation.detail)}", style="bold yellow")


def _block(text: str, mark: str, *, full: bool, style: str) -> Iterator[Text]:
    shown, note = (text, "") if full else cut(text)
    for number, line in enumerate(escape(shown).split("\n")):
        margin = MARGIN + (mark if number == 0 else " " * len(mark))
        yield Text(margin + line, style=style)
    if note:
        yield Text(f"{MARGIN}{' ' * len(mark)}{note}", style="dim")


def cut(text: str) -> tuple[str, str]:
    """The beginning of a long text, and a note that counts the missing characters."""
    lines = text.split("\n")
    shown = "\n".join(lines[:MAX_LINES])[:MAX_CHARACTERS]
    missing = len(text) - len(shown)
    return (shown, f"… {missing:,} more characters (--full)") if missing else (text, "")
