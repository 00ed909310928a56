"""JSON values as the ledger keeps them: those of Python's json module, checked once, in the caller's key order.

NaN, the infinities, long integers and -0.0 are kept as Python writes them. Other objects, tuples and keys that are not
text are refused with the path to them, because json.dumps would change or drop them silently.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ValidationInfo

from chatledger.models.limits import MOST_DIGITS, MOST_VALUES

MAX_DEPTH = 500
"""The maximum nesting of a payload. Python's own parser and writer recurse, and need some levels of their own."""
_WRAPPED_DEPTH = MAX_DEPTH + 16  # a format keeps a payload of full depth inside a few levels of its own
_INTEGER_DIGITS = 4_300
"""By default Python neither reads nor writes longer integers."""
_TOO_LONG = 10**_INTEGER_DIGITS
_INTEGER_BITS = _TOO_LONG.bit_length() - 1
"""All integers of so many bits are shorter."""
_BYTES_AROUND = 4
"""About the bytes of the signs around a value, or of a short number."""

JsonValue: TypeAlias = Any
"""A JSON value: None, a bool, a number, a str, a list or a dict with str keys."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_UNJOINED_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def check_json(value: JsonValue) -> JsonValue:
    """Return the value, or raise ValueError with the path to a part that is not JSON. Linear, without recursion."""
    problem = json_problem(value)
    if problem is not None:
        path, detail = problem
        raise ValueError(f"{path}: {detail}")
    return value


def json_bytes(value: object) -> int:
    """About the bytes of a value as JSON: its texts in UTF-8, and some for each value. Linear, without recursion."""
    total, pending = 0, [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            total += text_bytes(item)
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
        elif isinstance(item, int):
            total += item.bit_length() // 3
        total += _BYTES_AROUND
    return total


def text_bytes(text: str) -> int:
    """The bytes of a text in UTF-8, as the ledger stores it."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def json_problem(value: JsonValue, *, max_depth: int = _WRAPPED_DEPTH) -> tuple[str, str] | None:
    """The path to the first part that is not JSON, and what is wrong with it; None if there is none."""
    if value is None or isinstance(value, str) or _is_plain(value, max_depth):
        return None
    pending: list[tuple[Any, Place | None, str | int, int]] = [(value, None, "$", 1)]
    while pending:
        item, around, step, depth = pending.pop()
        if item is None or isinstance(item, (str, float)):
            continue
        if isinstance(item, int):
            if is_long(item):
                return path_of((around, step)), f"an integer of more than {_INTEGER_DIGITS:,} digits"
            continue
        place = (around, step)
        if depth > max_depth:
            return path_of(place)[:80], f"nested deeper than {max_depth}"
        if isinstance(item, dict):
            for key in item:
                if not isinstance(key, str):
                    return path_of(place), f"a key is {type(key).__name__}, not text"
            pending.extend((child, place, key, depth + 1) for key, child in reversed(item.items()))
        elif isinstance(item, list):
            last = len(item) - 1
            pending.extend((child, place, last - at, depth + 1) for at, child in enumerate(reversed(item)))
        else:
            return path_of(place), f"{type(item).__name__} is not JSON"
    return None


Place: TypeAlias = "tuple[Place | None, str | int]"
"""The position of a value: that of its container, and its key or index there. Paths are built only when needed: as
texts, the paths of all items of a long list below a long key would be far larger than the payload.
"""


def path_of(place: Place) -> str:
    """The position as text. The step of the root comes first, unchanged."""
    steps = []
    around, step = place
    while around is not None:
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
        around, step = around
    return str(step) + "".join(reversed(steps))


def is_long(value: object) -> bool:
    """Whether the value is an integer that Python refuses to write."""
    return isinstance(value, int) and value.bit_length() > _INTEGER_BITS and abs(value) >= _TOO_LONG


def text_of(value: object, write: Callable[[Any], str] = repr) -> str:
    """The text of any object, even of one whose `repr` raises; a long integer in hexadecimal."""
    if is_long(value):
        return hex(value)  # type: ignore[arg-type]
    try:
        return write(value)
    except Exception:  # raised by a class of the application
        return f"<{type(value).__name__}>"


def _is_plain(value: JsonValue, max_depth: int) -> bool:
    """Whether the value certainly is JSON; False in doubt. Builds no paths, which saves three quarters of the time."""
    level = [value]
    for _ in range(max_depth):
        containers = [item for item in level if type(item) not in _SCALARS]
        if not containers:
            return True
        level = []
        for item in containers:
            if isinstance(item, dict) and _TEXT.issuperset(map(type, item)):
                level += item.values()
            elif type(item) is list:
                level += item
            elif type(item) is not int or item.bit_length() > _INTEGER_BITS:
                return False
            if len(level) > _WIDEST:  # a list that contains itself twice would never end
                return False
    return False


_WIDEST = 100_000
_SCALARS = frozenset({str, bool, float, type(None)})
_TEXT = frozenset({str})


def dumps(value: JsonValue) -> str:
    """Compact JSON text that `loads` turns into an equal value, whatever its strings hold.

    A lone surrogate becomes a JSON escape. Two surrogates that a reader would join into one character stay unescaped:
    the text codec of the storage encodes them.
    """
    text = _write(value)
    if text.isascii():  # Python knows this without reading the text
        return text
    if _LONE_SURROGATE.search(text) is None or _UNJOINED_PAIR.search(text) is not None:
        return text
    return escape_surrogates(text)


def escape_surrogates(text: str) -> str:
    """The text with `\\ud800` for a surrogate. One call of C: a function of Python for each takes 50 times as long."""
    return text.encode("utf-8", "backslashreplace").decode()


_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode  # json.dumps makes an encoder each time


def loads(text: str) -> JsonValue:
    """Raises TooManyValues within `at_most_values`."""
    if (allowance := _ALLOWANCE.get()) is not None:
        allowance.take(text)
    return json.loads(text)


class TooManyValues(Exception):
    """The texts that are read have more values together than the reader allows. No error of the data: it is no
    ValueError, which would tell of a damaged cell.
    """


class _Allowance:
    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, text: str) -> None:
        """The signs are counted in strings too, which is far faster."""
        self._left -= text.count(",") + text.count("[") + text.count("{")
        if self._left < 0:
            raise TooManyValues


_ALLOWANCE: ContextVar[_Allowance | None] = ContextVar("chatledger_values", default=None)


@contextmanager
def at_most_values(most: int) -> Iterator[None]:
    """Raise TooManyValues inside once the texts read there have more values: a text of 8 MiB may take 250 MiB once it
    is parsed.
    """
    before = _ALLOWANCE.set(_Allowance(most))
    try:
        yield
    finally:
        _ALLOWANCE.reset(before)


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Equal value by value: the same types, key order and spelling of numbers (NaN equals NaN, 1 is not 1.0)."""
    if left is right:
        return True
    pending = [(left, right)]
    while pending:
        value, other = pending.pop()
        if value is other:
            continue
        if isinstance(value, str):
            if not isinstance(other, str) or value != other:
                return False
        elif isinstance(value, dict):
            if not isinstance(other, dict) or list(value) != list(other):
                return False
            pending.extend(zip(value.values(), other.values(), strict=True))
        elif isinstance(value, list):
            if not isinstance(other, list) or len(value) != len(other):
                return False
            pending.extend(zip(value, other, strict=True))
        elif type(value).__name__ != type(other).__name__ or repr(value) != repr(other):
            return False
    return True


STORED = {"stored": True}
"""Validation context of fields that were read as JSON from the store: they are JSON, and not looked at again."""


def _check(value: JsonValue, info: ValidationInfo) -> JsonValue:
    return value if info.context is STORED else check_json(value)


Json: TypeAlias = Annotated[JsonValue, AfterValidator(_check)]
"""A JSON value in a field of a model, which refuses anything else with the path to it."""
JsonObject: TypeAlias = Annotated[dict[str, JsonValue], BeforeValidator(_check)]
"""A JSON object, a dict with str keys, in a field of a model, which refuses anything else with the path to it."""


# --- The values of a text, before it is parsed ------------------------------------------------------------------------

# A parsed value takes up to a hundred times the bytes of its text, and each is looked at many times, so a text is
# limited in values as well as in bytes. Only the signs outside of strings count: a long string is one value. The digits
# of long numbers count too, since the time to read and write a number grows with the square of its digits. While Python
# parses a text, no other thread runs.

_PIECE = 1 << 16
"""Bytes that are looked at without a pause, in which other threads may run."""
_OPEN = frozenset(b"[{")
_ALL = bytes(range(256))
_NO_SIGN = bytes(set(_ALL) - set(b"[]{},"))
_NO_BRACKET = bytes(set(_ALL) - set(b"[]{}"))
_LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{31,}")


@dataclass(slots=True)
class Count:
    values: int = 1
    depth: int = 0
    deepest: int = 0
    digits: int = 0
    """The digits of numbers that have more than 30."""
    long_number: int | None = None
    """The byte at which the first of these numbers begins."""

    @property
    def is_crowded(self) -> bool:
        return self.values > MOST_VALUES or self.digits > MOST_DIGITS


def scan(body: bytes, *, deepest: int = sys.maxsize) -> Count:
    """The values of a text and its depth, where it is deeper than `deepest`. The scan stops at the first piece that is
    deeper, or that goes beyond MOST_VALUES or MOST_DIGITS.
    """
    count, in_text, at = Count(), False, 0
    while at < len(body) and count.deepest <= deepest and not count.is_crowded:
        piece = _piece(body, at)
        parts = piece.replace(b"\\\\", b"__").replace(b'\\"', b"__").split(b'"')
        outside = b"".join(parts[in_text::2])
        _add(count, outside.translate(None, _NO_SIGN), deepest)
        if numbers := _LONG_NUMBER.findall(outside):
            count.digits += sum(map(len, numbers))
            if count.long_number is None:
                count.long_number = at + _place(parts, in_text)
        at += len(piece)
        in_text ^= len(parts) % 2 == 0
    return count


def is_crowded(text: str) -> bool:
    """Whether the text has too many values, or too many digits, to be parsed as JSON."""
    return len(text) > MOST_VALUES and scan(text.encode("utf-8", "surrogatepass")).is_crowded


def read_text(text: str) -> JsonValue:
    """The value of a text that may be JSON. Raises ValueError or RecursionError if it is none, or is crowded."""
    if is_crowded(text):
        raise ValueError("too many values")
    return loads(text)


def _piece(body: bytes, at: int) -> bytes:
    """The next piece. It does not end between a backslash and the sign after it."""
    piece = body[at : at + _PIECE]
    backslashes = len(piece) - len(piece.rstrip(b"\\"))
    return piece[:-1] if backslashes % 2 and len(piece) > 1 else piece


def _place(parts: Sequence[bytes], in_text: bool) -> int:
    """Where the first long number begins. Each second part is a string."""
    at = 0
    for index, part in enumerate(parts):
        if index % 2 == in_text and (number := _LONG_NUMBER.search(part)) is not None:
            return at + number.start()
        at += len(part) + 1
    return 0  # digits on both sides of a string, which is no JSON


def _add(count: Count, signs: bytes, deepest: int) -> None:
    opened = signs.count(b"[") + signs.count(b"{")
    count.values += signs.count(b",") + opened
    if count.depth + opened <= deepest:
        count.depth += opened - (signs.count(b"]") + signs.count(b"}"))
        return
    for sign in signs.translate(None, _NO_BRACKET):
        count.depth += 1 if sign in _OPEN else -1
        count.deepest = max(count.deepest, count.depth)
