"""What is lost when messages of other origin become chat completions messages: the codes, and where they are noted."""

from __future__ import annotations

from dataclasses import dataclass, field

from chatledger.models import Loss

CUSTOM = "custom"  # the whole message is left out: it is for the screen
ROLE = "role"  # an unknown role is written as user
CONTENT_FORM = "content-form"  # None or [] is written as "" or null
REASONING = "reasoning"  # left out
SIGNATURE = "signature"  # left out with its reasoning
MEDIA = "media"  # a medium is left out that cannot be said, or not in this role
OPAQUE = "opaque"  # a part is left out that only its own format understands
FIELD = "field"  # another field is left out
CALL_ID = "call-id"  # an id is made up, or taken from the answered call
ARGUMENTS_FORM = "arguments-form"  # an object or None is written as JSON text
RESIDUAL = "residual"  # what only the source's format understands is left out


@dataclass(slots=True)
class LossLog:
    """The losses of one conversion in their order. `seq` is that of the message in hand."""

    seq: int | None = None
    losses: list[Loss] = field(default_factory=list)

    def add(self, code: str, path: str) -> None:
        self.losses.append(Loss(code, self.seq, path))

    def add_fields(self, source: object, *names: str) -> None:
        """A loss for each of these fields that holds something."""
        for name in names:
            if getattr(source, name) is not None:
                self.add(FIELD, name)
