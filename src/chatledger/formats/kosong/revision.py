"""The differences between the two revisions of kosong, and the keys that a residual has in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chatledger.models import ChatMessage
from chatledger.models.json import JsonValue

FAMILY = "kosong/"
ROLES = frozenset({"system", "user", "assistant", "tool"})

# The keys of a residual. Most messages have no residual: an object that a constructor made needs only its fields.
AS_DICT = "dict"  # true: it came in as a dict and goes out as that dict, not as the dump of an object
SHORT = "short"  # true: a dict without its None values, as exclude_none writes them
PARTIAL = "partial"  # the source's flag, true or false
FIELDS = "fields"  # how the source differs from the encoded fields
DUMP = "dump"  # how an object's own dump differs from the one that we would write
CLASSES = "classes"  # the classes of parts whose `type` was changed, by index
GIVEN = "given"  # the fields that were given, where they are not those that a constructor call would give
LINE = "line"  # how the line of a context file differs from the one that we would write


@dataclass(frozen=True, slots=True)
class Revision:
    """`message` is the class of its messages. `null_is_empty`: empty content dumps as null, one text stays a list."""

    name: str
    message: type[Any]
    null_is_empty: bool
    has_extras: bool
    has_videos: bool


def of_family(message: ChatMessage) -> bool:
    """Whether the message came from any revision of kosong, so that its residual has the keys above."""
    return message.format is not None and message.format.startswith(FAMILY)


def residual_of(message: ChatMessage) -> dict[str, JsonValue]:
    """The residual of a message of this family, empty for any other."""
    return message.residual if of_family(message) and isinstance(message.residual, dict) else {}
