"""Parts of any origin as parts that kosong can say."""

from __future__ import annotations

from typing import TypeAlias

from chatledger.formats.kosong.losses import FIELD, MEDIA, MIME_TYPE, OPAQUE, LossLog
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


def adapt_part(part: Part, path: str, revision: Revision, log: LossLog, *, own: bool) -> list[Part]:
    """What the part becomes: one part, several for the frames of a video, none for what cannot be said at all."""
    if isinstance(part, OpaquePart):
        if not own:
            log.add(OPAQUE, path)
        return [part] if own else []
    if isinstance(part, VideoPart) and _frames(part):
        log.add(MEDIA, path)
        return [ImagePart(url=frame) for frame in _frames(part)]
    log.add_fields(part, f"{path}.", "extras")
    if isinstance(part, (ImagePart, AudioPart, VideoPart, FilePart)):
        return [_medium(part, path, revision, log)]
    return [part.model_copy(update={"extras": None})]


def adapt_reasoning(reasoning: str | list[Part] | None, revision: Revision, log: LossLog) -> list[Part]:
    """Reasoning that its source keeps beside the content. Empty reasoning is not the absence of reasoning."""
    if isinstance(reasoning, str):
        return [ThinkPart(text=reasoning)]
    adapted: list[Part] = []
    for index, part in enumerate(reasoning or ()):
        adapted += adapt_part(part, f"reasoning[{index}]", revision, log, own=False)
    return [ThinkPart(text=part.text) if isinstance(part, TextPart) else part for part in adapted]


def _frames(part: VideoPart) -> list[str]:
    frames = (part.extras or {}).get(FRAMES)
    return [frame for frame in frames if isinstance(frame, str)] if isinstance(frames, list) else []


def _medium(part: Medium, path: str, revision: Revision, log: LossLog) -> Part:
    url = _url(part)
    can_be_said = not isinstance(part, FilePart) and (revision.has_videos or not isinstance(part, VideoPart))
    if url is None or not can_be_said:
        log.add(MEDIA, path)
        return TextPart(text=_as_link(part))
    if part.data is None and part.mime_type is not None and not url.startswith(f"data:{part.mime_type}"):
        log.add(MIME_TYPE, f"{path}.mime_type")
    if part.name is not None:
        log.add(FIELD, f"{path}.name")
    return part.model_copy(update={"url": url, "data": None, "mime_type": None, "name": None, "extras": None})


def _url(part: Medium) -> str | None:
    if part.url is not None or part.data is None:
        return part.url
    return f"data:{part.mime_type or 'application/octet-stream'};base64,{part.data}"


def _as_link(part: Medium) -> str:
    """A medium as text, as Qwen-Agent writes a file. Its data stays behind: a model reads no base64."""
    return f"[{type_of(part).removesuffix('_url')}]({part.url or part.name or part.id or ''})"
