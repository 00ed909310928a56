"""Content parts, known and unknown."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from chatledger import AudioPart, FilePart, ImagePart, OpaquePart, TextPart, ThinkPart, VideoPart
from chatledger.models import MediaPart, Part

PART: TypeAdapter[Part] = TypeAdapter(Part)

KNOWN: list[Part] = [
    TextPart(text=""),
    TextPart(text="a", extras={"cache_control": {"type": "ephemeral"}}),
    ThinkPart(text="", signature=""),
    ThinkPart(text="hm", signature="c2ln", extras={}),
    ImagePart(url="data:image/png;base64,AA==", id="7"),
    AudioPart(data="AA==", mime_type="audio/wav"),
    VideoPart(url="https://example.org/v.mp4", name="v"),
    FilePart(),
    OpaquePart(type=None, value=None),
    OpaquePart(type="hologram", value={"kind": "text", "text": 3}),
]


@pytest.mark.parametrize("part", KNOWN, ids=repr)
def test_a_part_comes_back_from_its_dump(part: Part) -> None:
    assert PART.validate_python(PART.dump_python(part)) == part
    assert PART.validate_json(PART.dump_json(part)) == part
    assert PART.validate_python(part) is part


UNKNOWN: list[tuple[dict[str, Any], str | None]] = [
    ({"kind": "hologram", "depth": 3, "text": "a"}, "hologram"),
    ({"kind": "", "a": 1}, ""),
    ({"kind": None, "a": 1}, None),
    ({"kind": ["text"], "a": 1}, None),
    ({"kind": "hologram", "type": "x", "value": "y"}, "hologram"),
]


@pytest.mark.parametrize(("data", "type_"), UNKNOWN, ids=[repr(data) for data, _ in UNKNOWN])
def test_an_unknown_kind_is_kept_whole(data: dict[str, Any], type_: str | None) -> None:
    part = PART.validate_python(data)
    assert part == OpaquePart(type=type_, value=data)
    assert PART.validate_python(PART.dump_python(part)) == part


def test_an_unknown_kind_that_is_not_json_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"\$.data: bytes is not JSON"):
        PART.validate_python({"kind": "hologram", "data": b""})


@pytest.mark.parametrize(
    "data",
    [{"kind": "text"}, {"kind": "text", "text": "a", "url": "b"}, {"text": "a"}, {"kind": "opaque"}, "a", None, 3],
    ids=repr,
)
def test_a_value_that_is_not_a_part_is_refused(data: Any) -> None:
    with pytest.raises(ValidationError):
        PART.validate_python(data)


def test_a_medium_of_no_kind_is_refused() -> None:
    with pytest.raises(ValidationError):
        PART.validate_python(MediaPart(url="x"))


@pytest.mark.parametrize("part", KNOWN, ids=repr)
def test_a_part_is_frozen(part: Part) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        part.extras = {}  # type: ignore[misc,union-attr]
