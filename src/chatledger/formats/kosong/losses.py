"""What is lost when messages of another origin become kosong messages: the codes, and where they are noted.

custom          the whole message is left out: it is for the screen
role            developer is written as system, an unknown role as user
merged          the message became a part of the assistant message before it
content-form    None, [] or one text in a list is written as another form of the same
call-id         an id is made, or taken from the answered call
media           a medium or file becomes text, a video its frames
mime-type       of a medium that is a URL
opaque          a part that only its own format understands is left out
field           another field is left out
residual        what only the message's own format understands is left out
"""

from __future__ import annotations

from dataclasses import dataclass, field

from chatledger.models import Loss

CUSTOM = "custom"
ROLE = "role"
MERGED = "merged"
CONTENT_FORM = "content-form"
CALL_ID = "call-id"
MEDIA = "media"
MIME_TYPE = "mime-type"
OPAQUE = "opaque"
FIELD = "field"
RESIDUAL = "residual"


@dataclass(slots=True)
class LossLog:
    """The losses of one conversion in their order. `seq` is that of the message in hand."""

    seq: int | None = None
    losses: list[Loss] = field(default_factory=list)

    def add(self, code: str, path: str) -> None:
        self.losses.append(Loss(code, self.seq, path))

    def add_fields(self, source: object, path: str, *names: str) -> None:
        """A loss for each of these fields that holds something."""
        for name in names:
            if getattr(source, name) is not None:
                self.add(FIELD, f"{path}{name}")
