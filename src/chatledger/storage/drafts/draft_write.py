"""One write of a draft, where the database runs it.

The draft's message changes in its own row. If a provider's response is more than one message, the last write also
appends the messages that follow, in the same statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

from chatledger.errors import DraftLost, RuleViolation, StorageError
from chatledger.ids import new_stamp
from chatledger.models import ChatMessage, RulesLevel, Usage
from chatledger.rules import Judgement, Tip, complete, grow, judge
from chatledger.storage.append.attempt import as_stored
from chatledger.storage.append.draft_rows import HeldDraft, PartialKey, PartialWrite, find_held, write_partial
from chatledger.storage.append.request import AppendRequest
from chatledger.storage.append.takeover import require_fence
from chatledger.storage.append.write import plan_rows
from chatledger.storage.drafts.open_drafts import interrupt_partial
from chatledger.storage.drivers.sql import WriteSql
from chatledger.storage.history.path import load_range
from chatledger.storage.repositories.runs import count_usage
from chatledger.storage.rows.encrypted import refuse_without_keys
from chatledger.storage.rows.messages import EncodedMessage, encode_message
from chatledger.storage.schema.text import encode_key

_ATTEMPTS = 4
"""Attempts of a write. Other writes to the branch, such as outputs, move its stamp too; more in a row are unlikely."""

Done: TypeAlias = tuple[HeldDraft, EncodedMessage, Sequence[ChatMessage]]
"""The new tip of the branch, the new content of the draft's row, and the messages as stored."""


@dataclass(frozen=True, slots=True)
class DraftWrite:
    """`opened` is the message as it was opened; `messages` are the same message as it is now, and those that follow it.
    `level` None is the level of the request or of the thread. With `usage`, the write ends the draft, in a
    transaction that adds the usage to its run.
    """

    request: AppendRequest
    opened: ChatMessage
    messages: Sequence[ChatMessage]
    level: RulesLevel | None = None
    usage: Usage | None = None

    def write(self, sql: WriteSql, held: HeldDraft | None, before: EncodedMessage | None) -> Done:
        """Raises DraftLost, RuleViolation and EncryptionError. `held` is the tip as the last write left it, `before`
        the stored content of the draft's row; None if they are unknown.
        """
        if self.messages[-1].state == "interrupted":
            return self._interrupt(sql, held, before)
        rows = [encode_message(message) for message in self.messages]
        for _ in range(_ATTEMPTS):
            held = held or self._find_held(sql)
            if held is None:
                return self._found_whole(sql, rows)
            done = self._attempt(sql, held, rows, before)
            if done is not None:
                self._count(sql)
                return done
            refuse_without_keys(sql, self.request.tenant)  # which may be why nothing was written
            held = before = None
        raise StorageError(f"other writers changed the branch during each of {_ATTEMPTS} attempts", retryable=True)

    def _attempt(
        self,
        sql: WriteSql,
        held: HeldDraft,
        rows: Sequence[EncodedMessage],
        before: EncodedMessage | None,
    ) -> Done | None:
        now, stamp, key = datetime.now(UTC), new_stamp(), self._key(self.opened)
        level = self.level or self.request.rules or held.rules or self.request.default_rules
        (own, *following), broken = self.messages, tuple(self.opened.violations)
        if own.state == "partial":
            tip = grow(held.tip, own, branch=key.branch)._replace(lease=self.request.lease_from(now))
        else:
            tip, broken = complete(held.tip, own, branch=key.branch, level=level, opened=broken)
        try:
            judgement = judge(tip, following, branch=key.branch, level=level) if following else Judgement(tip, [])
        except RuleViolation as error:  # its index is the one in `following`
            raise RuleViolation(error.rule, error.index + 1, error.detail) from None
        tip = judgement.tip
        if following and tip.partial_seq is not None:
            tip = _with_calls_of_the_response(tip, key)
        request = replace(self.request, messages=tuple(following), rows=tuple(rows[1:]), now=now)
        write = PartialWrite(
            key=key,
            stamp=held.stamp,
            new_stamp=stamp,
            tip=tip,
            encoded=rows[0],
            before=before,
            state=own.state,
            violations=broken,
            now=now,
            following=plan_rows(request, judgement, key.branch) if following else {},
        )
        if not write_partial(sql, write):
            return None
        placed = zip(judgement.messages, request.rows, strict=True)
        stored = [as_stored(request, key.branch, judged, row) for judged, row in placed]
        own = own.model_copy(update={"violations": list(broken)})
        return HeldDraft(tip, stamp, held.rules), rows[0], [own, *stored]

    def _interrupt(self, sql: WriteSql, held: HeldDraft | None, before: EncodedMessage | None) -> Done:
        """Write all fed pieces, even if they break a rule; then mark the last message as interrupted and answer
        its calls.
        """
        held = held or self._find_held(sql)
        if held is None:
            return self._found_whole(sql, [encode_message(message) for message in self.messages])
        *complete, last = self.messages
        messages = [*complete, last.model_copy(update={"state": "partial"})]
        partial = replace(self, messages=messages, level="lenient", usage=None)
        held, encoded, stored = partial.write(sql, held, before)
        if not interrupt_partial(sql, self.request, self._key(stored[-1])):
            raise self._lost()
        self._count(sql)
        return held, encoded, [*stored[:-1], stored[-1].model_copy(update={"state": "interrupted"})]

    def _count(self, sql: WriteSql) -> None:
        if self.usage is not None and self.opened.run_id is not None:
            count_usage(sql, self.request.tenant, self.opened.run_id, self.usage)

    def _find_held(self, sql: WriteSql) -> HeldDraft | None:
        """None if the message is no longer partial. Raises DraftLost if another draft writes it now."""
        held = find_held(sql, self._key(self.opened))
        if self.request.fence is not None:  # after the stamp was read
            require_fence(sql, self.request)
        if held is not None and (held.tip.lease is None or held.tip.lease.writer != self.request.draft):
            raise self._lost()
        return held

    def _found_whole(self, sql: WriteSql, rows: Sequence[EncodedMessage]) -> Done:
        """The message is no longer partial. That is fine if an earlier attempt, whose answer was lost, completed it."""
        key = self._key(self.opened)
        stored = load_range(sql, key.tenant, key.thread, key.branch, key.seq, key.seq + len(rows) - 1)
        wanted = [(message.state, row) for message, row in zip(self.messages, rows, strict=True)]
        if [(message.state, encode_message(message)) for message in stored] != wanted:
            raise self._lost()
        return HeldDraft(Tip(), 0, None), rows[0], stored

    def _lost(self) -> DraftLost:
        return DraftLost(self.request.thread_id, self.opened.branch or 0, self.opened.seq or 0)

    def _key(self, message: ChatMessage) -> PartialKey:
        branch, seq = message.branch or 0, message.seq or 0
        message_id = encode_key(message.message_id or "", "message_id")
        return PartialKey(self.request.tenant, self.request.thread, branch, seq, message_id)


def _with_calls_of_the_response(tip: Tip, key: PartialKey) -> Tip:
    """The tip whose partial message ends a response of several. The interruption answers the calls of all of them."""
    own = tuple([call for call in tip.open_calls if call.branch == key.branch and call.seq >= key.seq])
    others = tuple([call for call in tip.open_calls if call not in own])
    return tip._replace(open_calls=others, partial_calls=(*own, *tip.partial_calls))
