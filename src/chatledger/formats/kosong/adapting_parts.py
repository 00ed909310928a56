"""Parts of any origin as parts that kosong can say."""

from __future__ import annotations

from typing import TypeAlias

from chatledger.formats.kosong.reading_parts import type_of
from chatledger.formats.kosong.revision import Revision
from chatledger.models import (
    AudioPart,
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    TextPart,
    ThinkPart,
    VideoPart,
)

Medium: TypeAlias = ImagePart | AudioPart | VideoPart | FilePart

FRAMES = "frames"  # the extras key under which a video is the list of its pictures


def adapt_part(part: Part, revision: Revision, *, own: bool) -> list[Part]:
    """What the part becomes: one part, several for the frames of a video, none for what cannot be said at all."""
    if isinstance(part, OpaquePart):
        return [part] if own else []
    if isinstance(part, VideoPart) and _frames(part):
        return [ImagePart(url=frame) for frame in _frames(part)]
    if isinstance(part, (ImagePart, AudioPart, VideoPart, FilePart)):
        return [_medium(part, revision)]
    return [part.model_copy(update={"extras": None})]


def adapt_reasoning(reasoning: str | list[Part], revision: Revision) -> list[Part]:
    """Reasoning that its source keeps beside the content. Empty reasoning is not the absence of reasoning."""
    if isinstance(reasoning, str):
        return [ThinkPart(text=reasoning)]
    adapted = [one for part in reasoning for one in adapt_part(part, revision, own=False)]
    return [ThinkPart(text=part.text) if isinstance(part, TextPart) else part for part in adapted]


def _frames(part: VideoPart) -> list[str]:
    frames = (part.extras or {}).get(FRAMES)
    return [frame for frame in frames if isinstance(frame, str)] if isinstance(frames, list) else []


def _medium(part: Medium, revision: Revision) -> Part:
    url = _url(part)
    can_be_said = not isinstance(part, FilePart) and (revision.has_videos or not isinstance(part, VideoPart))
    if url is None or not can_be_said:
        return TextPart(text=_as_link(part))
    return part.model_copy(update={"url": url, "data": None, "mime_type": None, "name": None, "extras": None})


def _url(part: Medium) -> str | None:
    if part.url is not None or part.data is None:
        return part.url
    return f"data:{part.mime_type or 'application/octet-stream'};base64,{part.data}"


def _as_link(part: Medium) -> str:
    """A medium as text, as Qwen-Agent writes a file. Its data stays behind: a model reads no base64."""
    return f"[{type_of(part).removesuffix('_url')}]({part.url or part.name or part.id or ''})"


def is_part_as_read(part: Part, revision: Revision) -> bool:
    """Whether reading makes such a part."""
    if isinstance(part, OpaquePart):
        return True
    if isinstance(part, (TextPart, ThinkPart)):
        return part.extras is None
    known = isinstance(part, (ImagePart, AudioPart)) or (isinstance(part, VideoPart) and revision.has_videos)
    return known and (part.data, part.mime_type, part.name, part.extras) == (None, None, None, None)
