"""The repositories that a ledger and a transaction share, and the calls that take or return a provider's format.

Storage and formats do not import each other; they meet here. A format's module is imported on first use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Literal

from chatledger.arguments import (
    AFTER,
    BOOL,
    DICT_OR_NONE,
    FUNCTION_OR_NONE,
    INT,
    INT_OR_NONE,
    NUMBER,
    ON_OPEN_CALLS,
    RULES_OR_NONE,
    STR,
    STR_OR_NONE,
    Kind,
    require,
    require_between,
)
from chatledger.errors import DecodeError, InvalidArgument, ThreadNotFound
from chatledger.ids import new_stamp
from chatledger.models import Appended, ChatMessage, FormattedHistory, LedgerStats, Progress, RulesLevel, RunPrices
from chatledger.models.base import read_moment
from chatledger.models.json import JsonValue
from chatledger.models.kv import Put
from chatledger.models.weight import apart
from chatledger.repositories.branches import BranchRepository
from chatledger.repositories.drafts import DraftRepository
from chatledger.repositories.erasures import ErasureRepository
from chatledger.repositories.feedback import FeedbackRepository
from chatledger.repositories.kv import KvRepository
from chatledger.repositories.messages import MessageRepository
from chatledger.repositories.runs import RunRepository
from chatledger.repositories.threads import ThreadRepository
from chatledger.rules import CheckedThread
from chatledger.storage.append.request import LEASE, OnOpenCalls, make_request
from chatledger.storage.databases.scope import Scope
from chatledger.storage.history.tokens import CountTokens
from chatledger.storage.repositories.check_all import check
from chatledger.storage.repositories.drafts import INTERVAL, SIZE, Draft, Pace
from chatledger.storage.repositories.frames import FrameRepository
from chatledger.storage.repositories.stats import StatsFilter, read_stats
from chatledger.telemetry.calls import observed

if TYPE_CHECKING:
    from chatledger.formats.codec import Codec, Decoded

_VIEW = Kind("'stored' or 'model'", words=("stored", "model"))
_RESUME = Kind("'continue' or 'restart'", words=("continue", "restart"))
_LONGEST = 31_536_000
"""Seconds of a year. A longer lease or interval is a mistake, and would reach beyond the calendar."""
_OBJECTS = Kind("'models', 'dicts' or None", NoneType, words=("models", "dicts"))


class Repositories:
    """The calls that a ledger and a transaction share."""

    threads: ThreadRepository
    """Creates, finds, lists, updates and deletes threads."""
    messages: MessageRepository
    """Appends messages, reads histories, and changes stored messages."""
    branches: BranchRepository
    """Forks, activates and rewinds the branches of a thread."""
    runs: RunRepository
    """Starts, finishes and lists the runs of agents."""
    feedback: FeedbackRepository
    """Records, lists and summarizes scores."""
    erasures: ErasureRepository
    """Erases threads, users and tenants, and finds their tombstones."""
    drafts: DraftRepository
    """Lists and interrupts messages that are still being written, or were abandoned."""
    kv: KvRepository
    """Values of the application under keys: of a thread, a user or the tenant."""
    frames: FrameRepository
    """Messages, calls, runs and scores as Arrow record batches. Needs the extra `frames`."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.threads = observed(ThreadRepository, "threads", scope.observer)(scope)
        self.messages = observed(MessageRepository, "messages", scope.observer)(scope)
        self.branches = observed(BranchRepository, "branches", scope.observer)(scope)
        self.runs = observed(RunRepository, "runs", scope.observer)(scope)
        self.feedback = observed(FeedbackRepository, "feedback", scope.observer)(scope)
        self.erasures = observed(ErasureRepository, "erasures", scope.observer)(scope)
        self.drafts = observed(DraftRepository, "drafts", scope.observer)(scope)
        self.kv = observed(KvRepository, "kv", scope.observer)(scope)
        self.frames = observed(FrameRepository, "frames", scope.observer)(scope)

    def stream(
        self,
        thread_id: str,
        *,
        run_id: str | None = None,
        branch: int | None = None,
        expected: str | None = None,
        expected_version: int | None = None,
        message_id: str | None = None,
        idempotency_key: str | None = None,
        name: str | None = None,
        format: str | None = None,  # noqa: A002
        rules: RulesLevel | None = None,
        on_open_calls: OnOpenCalls = "error",
        interval: float = INTERVAL,
        size: int = SIZE,
        lease: float = LEASE,
        after: int | str | None = None,
        create: bool = False,
        user_id: str | None = None,
        kind: str | None = None,
        title: str | None = None,
        resume: Literal["continue", "restart"] = "restart",
    ) -> Draft:
        """Store an assistant message while the model writes it. Enter the draft, and feed it each piece.

            async with ledger.stream(thread_id, run_id=run_id, format="openai-chat") as draft:
                async for event in await client.chat.completions.create(stream=True, **request):
                    await draft.feed(event)
            print(draft.message.text)

        The draft writes the fed pieces `interval` seconds after the last write (0.25 by default), or as soon as they
        have `size` bytes (4,096 by default). A normal exit completes the message, without content if nothing was fed.
        An exception or a cancellation marks the message interrupted. If the process dies, the message counts as
        abandoned `lease` seconds after its last write (10 by default); the next append then interrupts it. `name` is
        the author's name in the message.

        With `format`, feed the events of a provider's stream (openai-chat, anthropic, openai-responses), as dicts or as
        the SDK's objects. The draft then stores what `append(…, format=…)` of the whole response would store.

        A retry passes the same `message_id` or `idempotency_key`. If the message is finished, or was interrupted, the
        draft has `replayed=True` and the stored message, and ignores what it is fed. If another draft is still writing
        it, entering raises DraftLive. If the lease of that draft is over, because its process died, this draft takes
        its place, with the same id at the same position; if several try, only one succeeds. With `resume="restart"` it
        starts the message again. With `resume="continue"` it keeps the stored content (`draft.message` has it) and adds
        the pieces to it; of a provider's response that continues stored content, it keeps the texts, the reasoning and
        the calls. The next write of the replaced draft raises DraftLost, and stores nothing.

        The other arguments are those of `messages.append`. With `after`, the message follows that message: if others
        follow it already, the draft is the first message of a new branch, which becomes the active one.

        Entering the draft raises what `messages.append` raises. This call raises UnknownFormat and InvalidArgument.
        """
        require(STR, thread_id=thread_id)
        require(STR_OR_NONE, message_id=message_id, idempotency_key=idempotency_key, name=name, format=format)
        require(NUMBER, interval=interval, lease=lease)
        require(INT, size=size)
        require_between(0, _LONGEST, interval=interval, lease=lease)
        require(_RESUME, resume=resume)
        if resume == "continue" and message_id is None and idempotency_key is None:
            detail = "needs the message_id or the idempotency_key of the message that is to be continued"
            raise InvalidArgument("resume='continue'", detail)
        from chatledger.formats.streams import ResponseEvents

        source = None if format is None else ResponseEvents(format, limit=self._scope.limits.bytes)
        if lease <= interval:
            raise InvalidArgument("lease", f"must be longer than interval, {interval:g} seconds, not {lease:g}")
        request = make_request(
            self._scope.tenant,
            thread_id,
            [ChatMessage(role="assistant", state="partial", message_id=message_id, name=name)],
            limits=self._scope.limits,
            run_id=run_id,
            branch=branch,
            expected=expected,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
            rules=rules,
            default_rules=self._scope.rules,
            on_open_calls=on_open_calls,
            lease=lease,
            draft=new_stamp(),
            continues=resume == "continue",
            after=after,
            create=create,
            user_id=user_id,
            kind=kind,
            title=title,
        )
        return Draft(self._scope, request, pace=Pace(interval, size), source=source)

    def check(self, thread_id: str | None = None, *, progress: Progress | None = None) -> AsyncIterator[CheckedThread]:
        """Check every thread in the order of their ids, or only the given one, and yield each with its findings: cells
        of all tables that cannot be read and, on the active branch, broken rules, R13 included, and open calls or a
        partial message at its end. At the end, damaged values of users and of the tenant, which are in no thread, come
        under the `thread_id` None.

        Reads every row of the tenant. Threads are read in batches, so memory stays bounded, and the number of
        statements grows with the number of batches. A damaged cell does not stop the check. `progress` receives the
        number of threads done and the number of all threads.

        Raises ThreadNotFound for the given thread, EncryptionError, and TenantOnly for all threads on a user's ledger.
        """
        require(STR_OR_NONE, thread_id=thread_id)
        require(FUNCTION_OR_NONE, progress=progress)
        if thread_id is None:
            self._scope.refuse_view("check of all threads")
        return check(self._scope, thread_id, progress)

    async def stats(
        self,
        by: Literal["day", "model"] | None = None,
        *,
        user_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        prices: bool | RunPrices = False,
    ) -> Sequence[LedgerStats]:
        """How many messages, threads, users, runs, tokens and scores there are, and what they cost: in one sum, or by
        day (in UTC) or model, in this order, None last.

        Messages and scores count by the time at which they were created, runs by that at which they started. One at
        `since` is included, one at `until` is not. With `user_id`, only the user's threads count. `prices` is that of
        `runs.usage`. Three statements, which read each message, run and score that is chosen.
        """
        require(STR_OR_NONE, user_id=user_id)
        which = StatsFilter(by, read_moment("since", since), read_moment("until", until))
        return await read_stats(self._scope, which, user_id, prices)

    async def append(
        self,
        thread_id: str,
        payload: object,
        *,
        format: str | None = None,  # noqa: A002 - the word of the tables and of the command line
        run_id: str | None = None,
        branch: int | None = None,
        expected: str | None = None,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
        rules: RulesLevel | None = None,
        on_open_calls: OnOpenCalls = "error",
        after: int | str | None = None,
        kv: Mapping[str, JsonValue | Put] | None = None,
        create: bool = False,
        user_id: str | None = None,
        kind: str | None = None,
        title: str | None = None,
    ) -> Appended:
        """Append a payload in a provider's or framework's format: a list of its messages, as dicts or as the
        framework's objects. The other arguments, and the errors, are those of `messages.append`.

            request = [{"role": "user", "content": "What is the weather in Tokyo?"}]
            appended = await ledger.append(thread_id, request, format="openai-chat")

        Without `format` the call detects the format, or raises UnknownFormat. A DecodeError names the place in the
        payload that does not fit the format; nothing is written then.

        The level that judges the messages also decides how the payload is read: `rules`, else the thread's level, else
        the ledger's. At the level lenient, `.losses` of the result names each value that could not be stored as it
        came. The thread's level is read only for a payload that strict rules refuse, which costs one more short read.
        With `create=True`, `rules` is also the level of the thread that the call creates.
        """
        require(STR, thread_id=thread_id)
        require(STR_OR_NONE, format=format, run_id=run_id, expected=expected, idempotency_key=idempotency_key)
        require(BOOL, create=create)
        require(STR_OR_NONE, user_id=user_id, kind=kind, title=title)
        require(INT_OR_NONE, branch=branch, expected_version=expected_version)
        require(RULES_OR_NONE, rules=rules)
        require(ON_OPEN_CALLS, on_open_calls=on_open_calls)
        require(AFTER, after=after)
        require(DICT_OR_NONE, kv=kv)
        from chatledger.formats import get_codec, recognise

        codec = await apart(lambda: recognise(payload), payload) if format is None else get_codec(format)
        decoded = await self._decode(thread_id, codec, payload, rules, user_id, create=create)
        appended = await self.messages.append(
            thread_id,
            decoded.messages,
            run_id=run_id,
            branch=branch,
            expected=expected,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
            rules=rules,
            on_open_calls=on_open_calls,
            after=after,
            kv=kv,
            create=create,
            user_id=user_id,
            kind=kind,
            title=title,
        )
        return replace(appended, losses=tuple(decoded.losses)) if decoded.losses else appended

    async def _decode(
        self,
        thread_id: str,
        codec: Codec,
        payload: object,
        rules: RulesLevel | None,
        user_id: str | None,
        *,
        create: bool,
    ) -> Decoded:
        """Decode a payload at the level that will judge its messages.

        All levels decode alike what strict accepts. So the thread's level is read only if strict refuses the payload.
        """
        if rules is not None:
            return await apart(lambda: codec.decode(payload, rules=rules), payload)
        try:
            return await apart(lambda: codec.decode(payload), payload)
        except DecodeError:
            thread = await self.threads.find(thread_id, user_id=user_id)
            if thread is None and not create:
                raise ThreadNotFound(thread_id) from None
            if ((thread and thread.rules) or self._scope.rules) != "lenient":
                raise
        return await apart(lambda: codec.decode(payload, rules="lenient"), payload)

    async def history(
        self,
        thread_id: str,
        *,
        format: str,  # noqa: A002
        view: Literal["stored", "model"] = "stored",
        as_: Literal["models", "dicts"] | None = None,
        carry: bool = False,
        branch: int | None = None,
        limit: int | None = None,
        before: int | None = None,
        after: int | None = None,
        newest: int | None = None,
        last: int | None = None,
        last_turns: int | None = None,
        max_tokens: int | None = None,
        count_tokens: CountTokens | None = None,
        run_id: str | None = None,
        user_id: str | None = None,
        partials: bool = True,
    ) -> FormattedHistory:
        """Read a history in a provider's or framework's format: `.payload` is what that format's own API takes. The
        arguments that choose the window, and the errors, are those of `messages.history`.

            history = await ledger.history(thread_id, format="openai-chat", view="model", last_turns=20, partials=False)
            answer = await client.chat.completions.create(model="gpt-5", messages=history.payload)

        Messages that were stored in the same format come back as they were. For all others, `.losses` lists what the
        format cannot express; `carry=True` keeps that in a free slot of the format, if it has one. `as_` chooses the
        format's objects ("models") or dicts ("dicts"); the default is the one that the messages came in as. Pass
        `partials=False` for a history that a model reads, because few formats can say that a message is still being
        written.

        `view="model"` returns what the provider of the format accepts; `.repairs` lists every change. It changes no
        row, and ignores `carry`. A history that the provider accepts comes back as it is stored. `max_tokens` then
        counts the stored messages without what a repair adds. Raises UnknownFormat for a format without a provider, and
        NothingToSend if the payload would have no message, such as that of an empty thread. Raises EncodeError for
        objects that the format does not have or that cannot hold a value.
        """
        require(STR, thread_id=thread_id, format=format)
        require(STR_OR_NONE, run_id=run_id, user_id=user_id)
        require(INT_OR_NONE, branch=branch, limit=limit, before=before, after=after)
        require(INT_OR_NONE, newest=newest, last=last, last_turns=last_turns, max_tokens=max_tokens)
        require(FUNCTION_OR_NONE, count_tokens=count_tokens)
        require(BOOL, carry=carry, partials=partials)
        require(_VIEW, view=view)
        require(_OBJECTS, as_=as_)
        from chatledger.formats.history import HistoryFormat

        wanted = HistoryFormat.of(format, view=view, as_=as_, carry=carry)  # before the read, so it can refuse first
        history = await self.messages.history(
            thread_id,
            branch=branch,
            limit=limit,
            before=before,
            after=after,
            newest=newest,
            last=last,
            last_turns=last_turns,
            max_tokens=max_tokens,
            count_tokens=count_tokens,
            run_id=run_id,
            user_id=user_id,
            partials=partials,
        )
        return await apart(lambda: wanted.write(history), history.messages)


def scope_of(ledger: Repositories) -> Scope:
    """The scope of a ledger or a transaction, for the parts of the library that call the functions of storage."""
    return ledger._scope  # noqa: SLF001 - the one place that reaches it from outside
