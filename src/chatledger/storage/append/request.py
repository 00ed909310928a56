"""The request of an append, prepared once before the first attempt: ids minted, rows encoded, limits checked.

Because the ids are minted here, every attempt of a request writes the same ids. So an attempt can find an earlier one
whose acknowledgement was lost by looking for the ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias, cast

from pydantic import TypeAdapter

from chatledger.arguments import (
    INT_OR_NONE,
    MESSAGES,
    ON_OPEN_CALLS,
    RULES_OR_NONE,
    STR_OR_NONE,
    Kind,
    require,
)
from chatledger.errors import IdConflict, InvalidArgument, LimitExceeded, VersionConflict
from chatledger.ids import derived_id, new_ids
from chatledger.models import LENIENT, ChatMessage, Limits, NewThread, RulesLevel, Thread
from chatledger.models.base import Model, copy_with, refuse_own_fields, refusing
from chatledger.models.json import JsonObject, JsonValue
from chatledger.models.kv import Put
from chatledger.rules import Lease, Writer
from chatledger.storage.append.kv import KvWrite, make_writes
from chatledger.storage.rows.encryption import Tenant
from chatledger.storage.rows.messages import EncodedMessage, bytes_of, encode_message, runs_of
from chatledger.storage.schema.text import Mark, decode_text, encode_json, encode_key, encode_text, read_mark

OnOpenCalls: TypeAlias = Literal["error", "close", "interrupt"]
"""How an append treats open calls. error: refuse a message that must wait for their results. close: answer them with
synthetic results. interrupt: close, and also interrupt a live draft.
"""
LEASE = 10.0
"""Seconds after its last write until a partial message counts as abandoned."""


@dataclass(frozen=True, slots=True)
class Creation:
    """The fields of a thread to create, as stored. Its user is the user of the tenant's view."""

    title: str | None = None
    kind: str | None = None
    metadata: str | None = None
    rules: RulesLevel | None = None
    created_at: datetime | None = None
    """None: the time of the request."""

    @classmethod
    def of(cls, thread: Thread | NewThread) -> Creation:
        """Raises LimitExceeded and InvalidArgument for a kind that cannot be a key, and metadata that is no JSON."""
        title = None if thread.title is None else encode_text(thread.title)
        kind = None if thread.kind is None else encode_key(thread.kind, "kind")
        metadata = None if thread.metadata is None else dict(thread.metadata)
        if isinstance(thread, NewThread):
            with refusing("metadata"):
                metadata = _METADATA.validate_python(metadata)
        return cls(title, kind, encode_json(metadata), thread.rules, thread.created_at)


_METADATA: TypeAdapter[JsonObject | None] = TypeAdapter(JsonObject | None)


ANSWER = "answer-"
"""How the id of an answer's run begins, so that no other append pays for the question whose it is."""


def is_answer(run: str) -> bool:
    return run.startswith(ANSWER)


class Fence(NamedTuple):
    """The attempt of an answer that writes: the run and the worker, as stored, and the number. `paused`: the answer
    waits for a decision about its calls.
    """

    run: str
    attempt: int
    worker: str
    paused: bool = False


class After(NamedTuple):
    """The message that a batch follows: its place (branch and seq), its id as stored, or its seq on the asked branch.
    `beside`: the batch is stored in the place of that message, beside it.
    """

    message: tuple[int, int] | str | int
    beside: bool = False


@dataclass
class AppendRequest:
    """`thread` is the key as stored. `branch` None is the active branch. `rules` None is the thread's level.

    A message in `messages` may lack an id; its row always has one.
    """

    tenant: Tenant
    thread: str
    thread_id: str
    messages: tuple[ChatMessage, ...]
    rows: tuple[EncodedMessage, ...]
    now: datetime
    branch: int | None = None
    expected: Mark | Literal[0] | None = None
    """The state of the branch that the caller has read; 0: it has no message yet."""
    rules: RulesLevel | None = None
    default_rules: RulesLevel = "strict"
    close_open_calls: bool = False
    interrupt: bool = False
    """Mark a partial message at the end as interrupted, even if its writer holds the lease."""
    lease: float = LEASE
    """Seconds for which other appends leave a partial message of the batch to its writer."""
    draft: Writer | None = None
    """The draft that the batch opens: its one message is partial, and the draft will fill it. If a
    message with its id is stored, that message is the result, whatever its content is.
    """
    continues: bool = False
    """The draft continues the words of an abandoned draft with its id. Otherwise it starts the message again."""
    digests: dict[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The slow digests that `gone.py` computed for the request, for the next attempt."""
    idempotency_key: str | None = None
    """If one was given, a repeat is searched for on every branch."""
    ids_are_new: bool = False
    """All message ids were minted for this request, so only an attempt of this request can have stored one."""
    after: After | None = None
    """Where the batch is stored; None is the end of the branch."""
    kv: tuple[KvWrite, ...] = ()
    """Values of the thread, in the order of their keys. They are written atomically with the messages."""
    creation: Creation | None = None
    """The thread to create if it does not exist. Its user is the user of the tenant's view."""
    fence: Fence | None = None
    """The attempt of an answer that writes. Its draft takes the place of an earlier attempt's, whose lease is over with
    that attempt.
    """

    @cached_property
    def message_ids(self) -> list[str]:
        """The ids as stored."""
        return [row.message_id or "" for row in self.rows]

    @cached_property
    def bytes(self) -> int:
        """The UTF-8 bytes of all texts together."""
        own = bytes_of(self.rows)
        return own + sum([one.bytes for one in self.kv]) if self.kv else own

    @property
    def has_key(self) -> bool:
        return self.idempotency_key is not None

    @cached_property
    def runs(self) -> list[str]:
        """The runs that the messages name, each once, as stored."""
        return runs_of(self.rows)

    @cached_property
    def is_fenced(self) -> bool:
        """Whether the append may be refused for the lease of an answer, which no cached tip knows."""
        return self.fence is not None or any(map(is_answer, self.runs))

    def lease_from(self, now: datetime) -> Lease:
        """The lease of a partial message of the batch that is written now. On PostgreSQL, the write takes the server's
        time in place of `now`.
        """
        return Lease(now, self.lease, self.draft, now)

    def whole(self, index: int) -> ChatMessage:
        """The message with its id, but without branch and seq."""
        message = self.messages[index]
        return message if message.message_id is not None else copy_with(message, {"message_id": self.ids[index]})

    @property
    def ids(self) -> list[str]:
        return [decode_text(id_) for id_ in self.message_ids]

    def insert(self, index: int, messages: Sequence[ChatMessage]) -> AppendRequest:
        """The request with the ledger's own messages inserted at `index`."""
        rows = tuple(map(encode_message, messages, new_ids(len(messages))))
        return replace(
            self,
            messages=(*self.messages[:index], *messages, *self.messages[index:]),
            rows=(*self.rows[:index], *rows, *self.rows[index:]),
        )


def _fill_ids(own: list[str | None], thread_id: str, idempotency_key: str | None) -> list[str]:
    """The id of each message: its own, or a new one. With an idempotency key, each call derives the same new ids."""
    if None not in own:
        return own  # type: ignore[return-value]
    if idempotency_key is None:
        fresh = iter(new_ids(own.count(None)))
        return [next(fresh) if id_ is None else id_ for id_ in own]
    return [
        derived_id("message", thread_id, idempotency_key, str(index)) if id_ is None else id_
        for index, id_ in enumerate(own)
    ]


def in_run(messages: Sequence[ChatMessage], run_id: str | None) -> tuple[ChatMessage, ...]:
    """The messages, with the run filled in where a message names none. System and developer messages need no run."""
    if run_id is None:
        return tuple(messages)
    return tuple(
        [
            copy_with(message, {"run_id": run_id})
            if message.run_id is None and message.role not in ("system", "developer")
            else message
            for message in messages
        ]
    )


class Terms(NamedTuple):
    """Who appends, and under which bounds. Without `limits` a batch may have any size."""

    tenant: Tenant
    limits: Limits | None = None
    rules: RulesLevel = "strict"
    """The level of a thread that has none of its own."""


def make_request(
    terms: Terms,
    thread_id: str,
    messages: Sequence[ChatMessage],
    *,
    run_id: str | None = None,
    branch: int | None = None,
    expected: str | Literal[0] | None = None,
    idempotency_key: str | None = None,
    rules: RulesLevel | None = None,
    on_open_calls: OnOpenCalls = "error",
    after: After | None = None,
    kv: Mapping[str, JsonValue | Put] | None = None,
    create: bool | NewThread = False,
) -> AppendRequest:
    """Makes every check that needs no database: raises LimitExceeded, IdConflict, and InvalidArgument."""
    tenant, limits, default_rules = terms
    require_messages(messages)
    if not ({type(run_id), type(idempotency_key)} <= STR_OR_NONE.plain and type(branch) in INT_OR_NONE.plain):
        require(STR_OR_NONE, run_id=run_id, idempotency_key=idempotency_key)
        require(INT_OR_NONE, branch=branch)
    if rules is not None or type(on_open_calls) is not str or on_open_calls != "error":
        require(RULES_OR_NONE, rules=rules)
        require(ON_OPEN_CALLS, on_open_calls=on_open_calls)
    if limits is not None and len(messages) > limits.messages:
        raise LimitExceeded("messages of an append", len(messages), limits.messages)
    if idempotency_key is not None:
        encode_key(idempotency_key, "idempotency_key")
    creation = None
    if create is not False:
        require(_CREATE, create=create)
        creation = Creation() if create is True else Creation.of(create)
        if after is not None:
            named = "alternative_to" if after.beside else "reply_to"
            raise InvalidArgument("create", f"cannot be combined with {named}, which is a message of a thread")
    values = () if kv is None else make_writes(kv)
    if values and not messages:
        raise InvalidArgument(
            "kv", "needs at least one message in the batch; to write a value alone, call ledger.kv.put"
        )
    own_ids = [message.message_id for message in messages]
    ids = _fill_ids(own_ids, thread_id, idempotency_key)
    _refuse_repeated(ids)
    messages = in_run(messages, run_id)
    thread = encode_key(thread_id, "thread_id")
    try:
        rows = tuple(map(encode_message, messages, ids))
    except OF_A_COPY as error:
        refuse_copies(messages, error)
        raise
    request = AppendRequest(
        tenant=tenant,
        thread=thread,
        thread_id=thread_id,
        messages=messages,
        rows=rows,
        now=datetime.now(UTC),
        branch=branch,
        expected=None if expected is None else _read_expected(expected, thread, branch),
        rules=rules,
        default_rules=default_rules,
        close_open_calls=on_open_calls != "error",
        interrupt=on_open_calls == "interrupt" and len(messages) > 0,
        idempotency_key=idempotency_key,
        ids_are_new=idempotency_key is None and own_ids.count(None) == len(own_ids),
        after=after,
        kv=values,
        creation=creation,
    )
    if limits is not None:
        _refuse_too_large(request, limits.bytes)
    return request


def read_expected(expected: str, thread: str, branch: int | None) -> Mark:
    """Raises InvalidArgument if the text is no mark of the thread, or if `branch` contradicts it."""
    mark = read_mark(expected, thread, "expected")
    if branch is not None and branch != mark.branch:
        raise InvalidArgument(
            "expected", f"is a mark of branch {mark.branch}, but branch={branch} was given; pass only expected"
        )
    return mark


def _read_expected(expected: str | Literal[0], thread: str, branch: int | None) -> Mark | Literal[0]:
    """Raises InvalidArgument."""
    if type(expected) is int and expected == 0:
        return 0
    require(_EXPECTED, expected=expected)
    return read_expected(cast(str, expected), thread, branch)


_CREATE = Kind("True, False or a NewThread", bool, NewThread)
_EXPECTED = Kind("a mark, or 0 for a branch without a message", str)


def moved_since(mark: Mark, thread_id: str, branch: int, version: int) -> VersionConflict:
    """The error for a mark that does not match the branch, which is at `version`. If the mark names another branch,
    `branch` is the active one.
    """
    other = f"the mark is of branch {mark.branch}, which is no longer the active branch"
    detail = "" if branch == mark.branch else other
    return VersionConflict("branch", mark.version, version, detail, thread_id=thread_id, branch=branch)


def require_messages(messages: Sequence[ChatMessage]) -> None:
    """Raises InvalidArgument."""
    if type(messages) is not list:
        require(MESSAGES, messages=messages)
    if not all(map(_is_message, messages)):
        other = next(type(message).__name__ for message in messages if not _is_message(message))
        detail = f"must be a list of ChatMessage, not of {other}; Payload(…, format) takes other formats"
        raise InvalidArgument("messages", detail)
    for message in messages:
        if type(message) is not ChatMessage or len(message.__dict__) != _FIELDS:
            refuse_own_fields(message, ChatMessage, "messages", "custom_data")


_FIELDS = len(ChatMessage.model_fields)


def _is_message(value: object) -> bool:
    return type(value) is ChatMessage or isinstance(value, ChatMessage)  # Pydantic's own isinstance is slow


OF_A_COPY = (TypeError, ValueError, AttributeError, LookupError, RecursionError)


def refuse_copies(messages: Sequence[ChatMessage], error: Exception) -> None:
    """Raises InvalidArgument for a copy that skipped validation (model_copy, model_construct): only such a message
    cannot be encoded, and `error` is what came of it.
    """
    if isinstance(error, InvalidArgument):
        return
    for index, message in enumerate(messages):
        with refusing(f"messages[{index}]"):
            ChatMessage.model_validate(dict(message), context=LENIENT)
            for held in (message.content, message.reasoning, message.tool_calls):
                for inner in held if isinstance(held, list) else ():
                    if isinstance(inner, Model):
                        type(inner).model_validate(dict(inner))
    detail = "contain a message that was built without validation; build it with ChatMessage.model_validate"
    raise InvalidArgument("messages", detail) from error


def _refuse_repeated(ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        repeated = next(id_ for id_, count in Counter(ids).items() if count > 1)
        raise IdConflict(
            "message", repeated, f"id {repeated!r}: occurs twice in the batch; give each message its own id"
        )


def _refuse_too_large(request: AppendRequest, maximum: int) -> None:
    if request.bytes > maximum:
        raise LimitExceeded("bytes of an append", request.bytes, maximum)
