"""kosong, the message library of the Kimi agents: the models from release 0.30 on, and the codec of their messages.

`chatledger.formats.kosong.v0_23` holds the older models. The classes behave like kosong's, except that they keep a part
of an unknown type as an UnknownPart. Do not store an exclude_none dump, because a call without arguments loses the key:
pass objects or full dumps to the codec, and derive the short dump when reading.
"""

from chatledger.formats.kosong.codec import KosongCodec
from chatledger.formats.kosong.models import (
    AudioURLPart,
    ContentPart,
    ImageURLPart,
    MergeableMixin,
    Message,
    Role,
    TextPart,
    ThinkPart,
    ToolCall,
    ToolCallPart,
    UnknownPart,
    VideoURLPart,
)
from chatledger.formats.kosong.parts import KosongRevision

__all__ = [
    "CODEC",
    "AudioURLPart",
    "ContentPart",
    "ImageURLPart",
    "MergeableMixin",
    "Message",
    "Role",
    "TextPart",
    "ThinkPart",
    "ToolCall",
    "ToolCallPart",
    "UnknownPart",
    "VideoURLPart",
]

CODEC = KosongCodec(KosongRevision("kosong/0.30", Message, null_is_empty=False, has_extras=True, has_videos=True))
