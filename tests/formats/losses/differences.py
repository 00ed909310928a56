"""What differs between messages and what was read back of them, said by hand and by search, to judge reported losses.

It shares nothing with the code that reports: it does not make a report of its own, but asks of a given one whether it
explains what came back (nothing else differs) and whether each line of it is needed (what it names does differ).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chatledger.models import ChatMessage, Loss

Report = set[tuple[str, str]]
Item = tuple[Any, Report]
"""A part or a call, and what is reported of it: (code, field), "" for the whole."""

SCALARS = {
    "role": "role",
    "name": "name",
    "tool_call_id": "call-id",
    "is_error": "is-error",
    "state": "state",
    "run_id": "run-id",
    "response_metadata": "response-metadata",
    "custom_data": "custom-data",
}
PLACED = ("left-out", "split", "merged", "order", "made-up")
MEDIA = ("image", "audio", "video", "file")


def problems(
    messages: Sequence[ChatMessage],
    back: Sequence[ChatMessage],
    origins: Sequence[tuple[int, ...]],
    losses: Sequence[Loss],
    own: str,
) -> list[str]:
    """What is wrong with the report. The messages have the seqs 1, 2, 3 …"""
    if len(origins) != len(back):
        return [f"{len(origins)} origins of {len(back)} messages"]
    reported = [{(loss.code, loss.path) for loss in losses if loss.seq == seq} for seq, _ in enumerate(messages, 1)]
    found = [f"{loss} is of no message" for loss in losses if loss.seq is None and messages]
    found += [f"{loss} stands twice" for index, loss in enumerate(losses) if loss in losses[:index]]
    found += _wrong_places(len(messages), origins, reported)
    for group in _groups(len(messages), origins):
        pieces = [piece for piece, of in zip(back, origins, strict=True) if group & set(of)]
        if pieces:
            found += _wrong_group([(messages[i], reported[i]) for i in sorted(group)], pieces, own)
    return found


# --- Messages as a whole ----------------------------------------------------------------------------------------------


def _wrong_places(count: int, origins: Sequence[tuple[int, ...]], reported: Sequence[Report]) -> list[str]:
    found = []
    for index in range(count):
        places = [of for of in origins if index in of]
        differs = {"left-out": not places, "split": len(places) > 1, "merged": any(min(of) < index for of in places)}
        found += [f"{code} of {index}" for code, is_so in differs.items() if is_so != ((code, "") in reported[index])]
    made = sum(1 for of in origins if not of)
    if count and (made > 0) != any(("made-up", "") in report for report in reported):
        found.append("made-up")
    moved = {index for index in range(count) if ("order", "") in reported[index]}
    firsts = list(dict.fromkeys(min(of) for of in origins if of))
    if not _rises([first for first in firsts if first not in moved]):
        found.append("something else is out of order")
    found += [f"order of {one}" for one in moved if _rises([f for f in firsts if f not in moved or f == one])]
    return found


def _rises(values: Sequence[int]) -> bool:
    return sorted(values) == list(values)


def _groups(count: int, origins: Sequence[tuple[int, ...]]) -> list[set[int]]:
    groups = [{index} for index in range(count)]
    for of in origins:
        touched = [group for group in groups if group & set(of)]
        groups = [group for group in groups if not group & set(of)]
        groups += [set().union(*touched)] if touched else []
    return groups


# --- A group ----------------------------------------------------------------------------------------------------------


def _wrong_group(said: Sequence[tuple[ChatMessage, Report]], back: Sequence[ChatMessage], own: str) -> list[str]:
    found = []
    for message, report in said:
        for field, code in SCALARS.items():
            differs = not _agree(message, back, field)
            if differs != ((code, field) in report):
                found.append(f"{field} of {message.seq}: {'not reported' if differs else 'reported for nothing'}")
        if message.format != own:
            differs = message.residual is not None and not _agree(message, back, "residual")
            if differs != (("residual", "residual") in report):
                found.append(f"residual of {message.seq}")
        known = {("residual", "residual"), *((code, field) for field, code in SCALARS.items())}
        strange = [path for code, path in report if (code, path) not in known and code not in PLACED[:4] and path]
        found += [f"{path} of {message.seq} is no path" for path in strange if not path.startswith(_LISTS)]
    for field in ("content", "reasoning"):
        found += _wrong_content(field, said, back)
    return found + _wrong_thoughts(said, back) + _wrong_calls(said, back)


def _wrong_thoughts(said: Sequence[tuple[ChatMessage, Report]], back: Sequence[ChatMessage]) -> list[str]:
    """Reasoning that is said to stand elsewhere does, and what is said to be lost is."""
    same = _thoughts([message for message, _ in said]) == _thoughts(back)
    codes = {code for _, report in said for code, _ in report}
    wrong = "reasoning" if same else "reasoning-form"
    return [f"{wrong} is the wrong code"] if wrong in codes else []


def _thoughts(messages: Sequence[ChatMessage]) -> str:
    own = [content for message in messages for content in [message.reasoning] if content]
    texts = [content if isinstance(content, str) else _joined(content, ("text", "think")) for content in own]
    return "".join(texts) + "".join(_joined(m.content, ("think",)) for m in messages if isinstance(m.content, list))


def _joined(parts: Sequence[Any], kinds: Sequence[str]) -> str:
    return "".join(part.text for part in parts if part.kind in kinds)


_LISTS = ("content", "reasoning", "tool_calls")


def _agree(message: ChatMessage, back: Sequence[ChatMessage], field: str) -> bool:
    """Whether the pieces say what the message says; of several pieces those that say nothing do not count."""
    values = [getattr(piece, field) for piece in back]
    if len(values) > 1:
        values = [value for value in values if value is not None] or [None]
    return all(_equal(getattr(message, field), value) for value in values)


def _equal(left: Any, right: Any) -> bool:
    """Also in key order, in the types of numbers and in the sign of zero."""
    return repr(left) == repr(right)


# --- Contents ---------------------------------------------------------------------------------------------------------


def _wrong_content(field: str, said: Sequence[tuple[ChatMessage, Report]], back: Sequence[ChatMessage]) -> list[str]:
    speaking = [(m, r) for m, r in said if getattr(m, field)] or list(said[:1])
    answers = [getattr(piece, field) for piece in back if getattr(piece, field)] or [getattr(back[0], field)]
    items = [item for message, report in speaking for item in _items(field, getattr(message, field), report)]
    parts = [part for content in answers for part, _ in _items(field, content, set())]
    form, answer = _form([getattr(message, field) for message, _ in speaking]), _form(answers)
    whole = [(m.seq, code) for m, report in said for code, path in report if path == field]
    listening = [m.seq for m, _ in said if m.seq not in [speaker.seq for speaker, _ in speaking]]
    found = [f"{field} of {seq}, which says nothing" for seq, _ in whole if seq in listening]
    if field == "reasoning" and items and not parts:
        silent = {m.seq for m, _ in speaking} - {seq for seq, _ in whole}
        return found + [f"reasoning of {seq}" for seq in silent] + _wrong_signatures(field, items, back)
    if field == "reasoning" and whole and form == "text":
        return found + (["reasoning is as it was"] if form == answer and items[0][0].text == parts[0].text else [])
    lost = [item for item in items if any(name == "" and code != "media-form" for code, name in item[1])]
    kept = [item for item in items if item not in lost]
    texts = "".join(part.text for part in parts if hasattr(part, "text"))
    fits = _in_text(texts, field) if answer == "text" and form == "parts" else None
    if not _explained(kept, parts, fits):
        found.append(f"{field}: something else differs")
    same_length = fits is not None or len(parts) == len(kept)
    if not whole and (form != answer or not (same_length or lost)):
        found.append(f"{field}: its form or its length differs")
    there = [item for item in lost if _explained([i for i in items if i is item or i in kept], parts, fits, fresh=item)]
    found += [f"{field}: a part that is there is reported: {item}" for item in there]
    of_whole = [code for _, code in whole if code not in ("text", "order")]
    if field == "content" and (
        len(of_whole) > 1 or ("content-form" in of_whole) != (form != answer and len(of_whole) == len(whole))
    ):
        found.append("content: its form is reported wrongly")
    if whole and form == answer and same_length and not any(isinstance(item[0], _Text) for item in lost):
        found.append(f"{field}: reported for nothing")
    return found + _wrong_signatures(field, lost, back)


def _items(field: str, content: Any, report: Report) -> list[Item]:
    """The parts of a content, each with what is reported of it."""
    if isinstance(content, str):
        lost = ("text", "order") if field == "content" else ("reasoning", "reasoning-form")
        codes = {(code, "") for code, path in report if path == field and code in lost}
        return [(_Text(content), codes)] if content else []
    items = []
    for index, part in enumerate(content or ()):
        own = f"{field}[{index}]"
        below = {(code, path[len(own) + 1 :]) for code, path in report if path == own or path.startswith(f"{own}.")}
        items.append((part, below))
    return items


class _Text:
    """A content that is one text, as if it were a part."""

    kind, extras = "text", None

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return repr(self.text)


def _form(contents: Sequence[Any]) -> str:
    if len(contents) > 1:
        return "parts"
    if contents[0] is None:
        return "null"
    return "text" if isinstance(contents[0], str) else "parts"


def _in_text(text: str, field: str) -> Callable[[Sequence[Item]], bool]:
    kinds = ("text", "think") if field == "reasoning" else ("text",)

    def fits(items: Sequence[Item]) -> bool:
        start = 0
        for part, report in items:
            place = text.find(part.text, start) if part.kind in kinds else -1
            unsaid = {name for name in ("extras", "signature") if getattr(part, name, None) is not None}
            if place < 0 or (report is not _ANY and unsaid != {name for _, name in report if name}):
                return False
            start = place + len(part.text)
        return True

    return fits


def _explained(
    items: Sequence[Item],
    parts: Sequence[Any],
    fits: Callable[[Sequence[Item]], bool] | None,
    *,
    fresh: Item | None = None,
) -> bool:
    """Whether the items are there, in order; `fresh` may differ in any of its fields."""
    if fits is not None:
        return fits([(item[0], _ANY) if item is fresh else item for item in items])
    return _embedded([(item[0], _ANY) if item is fresh else item for item in items], list(parts))


_ANY: Report = {("", "*")}


def _embedded(items: list[Item], parts: list[Any]) -> bool:
    """Whether the items stand among the parts in their order, each with the reported differences and no others."""
    if not items:
        return True
    return any(
        _is_same(items[0], part) and _embedded(items[1:], parts[place + 1 :]) for place, part in enumerate(parts)
    )


def _is_same(item: Item, part: Any) -> bool:
    given, report = item
    if given.kind != part.kind or not _is_one_thing(given, part):
        return False
    if report is _ANY:
        return True
    names = {name for _, name in report if name}
    if given.kind in MEDIA and ("media-form", "") in report:
        respelt = _medium(given) == _medium(part) and _differing(given, part, ("url", "data", "mime_type")) != set()
        return respelt and _differing(given, part, ("name", "id", "extras")) == names
    fields = ("url", "data", "mime_type", "name", "id", "extras", "signature", "type")
    return _differing(given, part, fields) == names


def _is_one_thing(given: Any, part: Any) -> bool:
    if given.kind in ("text", "think"):
        return bool(given.text == part.text)
    if given.kind == "opaque":
        return _equal(given.value, part.value)
    return bool(_known_by(given) & _known_by(part))


def _differing(given: Any, part: Any, names: Sequence[str]) -> set[str]:
    return {name for name in names if not _equal(getattr(given, name, None), getattr(part, name, None))}


def _medium(part: Any) -> tuple[Any, ...]:
    if part.data is None and (part.url or "").startswith("data:") and ";base64," in part.url:
        head, _, data = part.url.partition(",")
        if head.endswith(";base64"):
            return None, data, head[len("data:") :].split(";")[0] or None
    return part.url, part.data, part.mime_type


def _known_by(part: Any) -> set[tuple[str, Any]]:
    known = {("url", part.url), ("data", _medium(part)[1])}
    return {(name, value) for name, value in known if value} or {("id", (part.id, part.name))}


def _wrong_signatures(field: str, lost: Sequence[Item], back: Sequence[ChatMessage]) -> list[str]:
    both = [content for piece in back for content in (piece.content, piece.reasoning) if isinstance(content, list)]
    there = {getattr(part, "signature", None) for content in both for part in content}
    found = []
    for part, report in lost:
        signature = getattr(part, "signature", None)
        if (signature is not None and signature not in there) != (("signature", "signature") in report):
            found.append(f"{field}: the signature of {part}")
    return found


# --- Calls ------------------------------------------------------------------------------------------------------------


def _wrong_calls(said: Sequence[tuple[ChatMessage, Report]], back: Sequence[ChatMessage]) -> list[str]:
    items = [item for message, report in said for item in _items("tool_calls", message.tool_calls, report)]
    calls = [call for piece in back for call in piece.tool_calls or ()]
    whole = {code for _, report in said for code, path in report if path == "tool_calls"}
    lost = [item for item in items if any(name == "" for _, name in item[1])]
    kept = [item for item in items if item not in lost]
    found = []
    if lost and len(calls) >= len(items):
        found.append("tool_calls: one is reported and none is missing")
    if len(kept) > len(calls):
        found.append("tool_calls: one is missing that is not reported")
    if ("made-up" in whole) != (len(calls) > len(kept)):
        found.append("tool_calls: made up")
    if "made-up" not in whole and not all(map(_is_same_call, kept, calls)):
        found.append("tool_calls: one differs otherwise")
    empty = any(message.tool_calls == [] for message, _ in said)
    none = all(piece.tool_calls is None for piece in back)
    if ("calls" in whole) != (not items and not calls and empty == none):
        found.append("tool_calls: empty or none")
    return found


def _is_same_call(item: Item, call: Any) -> bool:
    given, report = item
    differing = _differing(given, call, ("id", "name", "arguments", "extras"))
    return differing == {name for _, name in report}
