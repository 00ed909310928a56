"""Tell another file of the same name. A record without an id field is known by the file's name and its place in it."""

from __future__ import annotations

from chatledger.errors import IdConflict, MessageNotFound
from chatledger.ledger import Ledger
from chatledger.models import ChatMessage, Oldest, is_redacted
from chatledger.repositories.history import with_draft
from chatledger.storage.rows.messages import is_encoded_alike
from chatledger.transfer.plan import PlannedThread


async def find_difference(ledger: Ledger, planned: PlannedThread, source: str) -> IdConflict | None:
    """The error of a file whose first record is another one than that which is stored at its place. A message that was
    changed in the ledger since is no difference of the file.
    """
    thread_id, messages = planned.thread_id, planned.branches[0].messages
    if not messages:
        return None
    history = await ledger.messages.history(thread_id, Oldest(len(messages)), branch=0)
    for stored, message in zip(with_draft(history), messages, strict=False):
        if not is_encoded_alike(stored, message):
            changed = await _was_changed(ledger, stored, message)
            return None if changed else IdConflict("thread", thread_id, _DETAIL.format(source))
    return None


_DETAIL = (
    "the file begins with another record than the file {!r} that was imported before, so nothing of it is stored; give "
    "it another name with --source, or name the field that identifies its records with --id-field"
)


async def _was_changed(ledger: Ledger, stored: ChatMessage, sent: ChatMessage) -> bool:
    """Whether the stored message was revised or redacted, or the given one removed."""
    if is_redacted(stored):
        return True
    for message in (stored, sent):
        try:
            if await ledger.messages.revisions(stored.thread_id or "", message.message_id or ""):
                return True
        except MessageNotFound:
            pass
    return False
