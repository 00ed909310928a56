"""Messages: appends them to a branch, and reads any window of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeVar

from chatledger.arguments import (
    BOOL,
    INT,
    INT_OR_NONE,
    ON_OPEN_CALLS,
    RULES_OR_NONE,
    STR,
    STR_OR_NONE,
    Kind,
    require,
    require_items,
)
from chatledger.errors import InvalidArgument, StorageError, ThreadNotFound, VersionConflict
from chatledger.ids import new_stamp
from chatledger.models import (
    Alternative,
    Appended,
    ChatMessage,
    Cursor,
    Hit,
    Loss,
    Mark,
    Messages,
    Newest,
    NewThread,
    Oldest,
    Page,
    Revision,
    RulesLevel,
    ThreadChange,
    Tokens,
    Turns,
)
from chatledger.models.base import read_moment
from chatledger.models.json import JsonValue
from chatledger.models.kv import Put
from chatledger.models.weight import apart, in_thread
from chatledger.models.windows import Window
from chatledger.removed import names_removed
from chatledger.repositories.history import History, Prompt, PromptFormat, history_of
from chatledger.repositories.payloads import read_messages
from chatledger.rules import INTERRUPTED, Writer
from chatledger.storage.append.attempt import close_open_calls
from chatledger.storage.append.gone import with_digests
from chatledger.storage.append.request import (
    OF_A_COPY,
    After,
    AppendRequest,
    OnOpenCalls,
    make_request,
    read_expected,
    refuse_copies,
    require_messages,
)
from chatledger.storage.changes.redaction import erase_at
from chatledger.storage.changes.removal import pop, retract, rewind_to
from chatledger.storage.changes.revise import list_revisions, revise_message
from chatledger.storage.databases.scope import Scope
from chatledger.storage.drafts.draft import Draft, Pace, read_token
from chatledger.storage.follow.follow_cursor import read_start
from chatledger.storage.follow.follower import follow
from chatledger.storage.history.places import MESSAGE, Place, read_id, read_place
from chatledger.storage.history.window_request import Section
from chatledger.storage.history.window_request import Window as Asked
from chatledger.storage.lists.cursors import page_size, part_of
from chatledger.storage.lists.search import search
from chatledger.storage.lists.search_scan import SearchRequest
from chatledger.storage.lists.search_text import Query
from chatledger.storage.repositories.alternatives import alternatives_of
from chatledger.storage.repositories.find import find_messages, get_message
from chatledger.storage.repositories.sync import compare, part, shorten
from chatledger.storage.rows.messages import is_long_batch
from chatledger.storage.schema.text import encode_key

T = TypeVar("T")

_MESSAGE = Kind("a ChatMessage", ChatMessage)
_PACE = Kind("a Pace", Pace)
PACE = Pace()
PAGE = 500
"""The most messages that `iterate` holds at a time."""
_ON_DIFFERENCE = Kind("'error' or 'branch'", words=("error", "branch"))


class MessageRepository:
    """The messages of threads: `ledger.messages`, and `tx.messages` in a transaction."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    @names_removed("append")
    async def append(
        self,
        thread_id: str,
        messages: Messages,
        *,
        create: bool | NewThread = False,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        expected: Mark | Literal[0] | None = None,
        branch: int | None = None,
        reply_to: ChatMessage | str | None = None,
        alternative_to: ChatMessage | str | None = None,
        on_open_calls: OnOpenCalls = "error",
        rules: RulesLevel | None = None,
        kv: Mapping[str, JsonValue | Put] | None = None,
    ) -> Appended:
        """Store a message, or several in this order or none, at the end of the branch (None: the active one). Costs one
        statement on PostgreSQL, or two if this process did not write to the thread last.

            question = ChatMessage.user("What is the weather in Tokyo?", message_id="request-17")
            appended = await ledger.messages.append(thread_id, question)

        A `Payload` has them in a provider's or framework's format. A DecodeError names the place in it that does not
        fit the format; nothing is written then. The level that judges the messages also decides how the payload is
        read: `rules`, else the thread's level, else the ledger's. At the level lenient, `.losses` of the result names
        each value that could not be stored as it came. The thread's level is read only for a payload that strict rules
        refuse, which costs one more short read.

            request = [{"role": "user", "content": "What is the weather in Tokyo?"}]
            appended = await ledger.messages.append(thread_id, Payload(request, "openai-chat"))

        Calling `append` twice stores two turns, unless you pass message ids or an `idempotency_key`: then the second
        call stores nothing and returns the first result. Message ids are looked up along the whole path of the branch,
        the messages of a key on every branch of the thread. A repeat never activates a branch.

        `run_id` is the run of each message that names none, except system and developer messages; a run that does not
        exist is created, and is `running` until `runs.finish`. `rules` judges this batch in place of the thread's
        level. `on_open_calls="close"` first answers open calls that would refuse the batch with synthetic results.

        `expected`, the mark of a history or an append, makes the append conditional: it raises VersionConflict if the
        branch changed since, or if another branch is active and `branch` names none. The guide about retries lists what
        changes a branch. `expected=0` says that the branch has no message yet. A repeat succeeds whatever is expected.

        If the message at the end is partial, a batch of one message with the same id, no longer partial, completes it
        in its place. Any other batch raises DraftLive while the writer of that message holds its lease, at every level
        of the rules. Once the lease is over, the batch interrupts the message and follows it.
        `on_open_calls="interrupt"` interrupts a live one as well, and closes open calls like "close".

        `reply_to`, a message of the thread or its id, stores the messages behind that message, and `alternative_to`
        stores them in its place, beside it: another answer, or the question in other words. If others follow that place
        already, a new branch shares the path up to it, takes these messages and becomes the active one, all in one
        transaction of three round trips. Repeated with the same ids or the same key, the call returns the first result,
        on whichever branch it is, and activates nothing; without them it makes another branch. If the active branch
        does not have the message, the place is on the branch that stores it, unless `branch` or `expected` names one;
        an append at the end of a branch activates nothing. Raises MessageNotFound.

        An empty batch writes no message. It checks `expected`, and returns the version and the mark of the branch.

        `kv` has up to 64 values of the thread, by key, which are written together with the messages, or not at all.
        `ledger.kv` reads them. `Put(value, expected=version)` writes a value only if the stored one has that version,
        0 for no value; another version is a VersionConflict. A repeat writes no value.

        `create=True` creates the thread if it does not exist, in the same statement; `create=NewThread(title=…)` with
        these fields, which change nothing in a thread that exists. It belongs to the user of the ledger. An erased
        thread stays erased. An empty batch creates the thread too. An id that is not found may belong to another user:
        let the ledger make the ids of threads (`threads.create`), or use random ones.

        Raises, with nothing written: LimitExceeded, IdConflict, ThreadNotFound, BranchNotFound, VersionConflict,
        DraftLive, RuleViolation, RunConflict, Erased, StorageError, UnknownFormat, DecodeError. Raises OutcomeUnknown
        if the database went away in the middle.
        """
        losses: Sequence[Loss] = ()
        if type(messages) is not list:
            require(STR, thread_id=thread_id)
            require(RULES_OR_NONE, rules=rules)
            messages, losses = await read_messages(self._scope, thread_id, messages, rules, create=create)
        make = partial(
            make_request,
            self._scope.terms,
            thread_id,
            messages,
            create=create,
            run_id=run_id,
            idempotency_key=idempotency_key,
            expected=expected,
            branch=branch,
            after=read_after(thread_id, reply_to, alternative_to),
            on_open_calls=on_open_calls,
            rules=rules,
            kv=kv,
        )
        appended = await self._scope.append(await _encoded(messages, make, kv))
        return replace(appended, losses=losses) if losses else appended

    @names_removed("stream")
    def stream(
        self,
        thread_id: str,
        *,
        format: str | None = None,  # noqa: A002 - the word of the tables and of the command line
        message: ChatMessage | None = None,
        create: bool | NewThread = False,
        run_id: str | None = None,
        idempotency_key: str | None = None,
        expected: Mark | Literal[0] | None = None,
        branch: int | None = None,
        reply_to: ChatMessage | str | None = None,
        alternative_to: ChatMessage | str | None = None,
        on_open_calls: OnOpenCalls = "error",
        rules: RulesLevel | None = None,
        resume: bool = False,
        pace: Pace = PACE,
    ) -> Draft:
        """Store an assistant message while the model writes it. Enter the draft, and feed it each piece.

            async with ledger.messages.stream(thread_id, run_id=run_id, format="openai-chat") as draft:
                async for event in await client.chat.completions.create(stream=True, **request):
                    await draft.feed(event)
            print(draft.message.text)

        `pace` says how often the draft writes the fed pieces, and how long it counts as alive. A normal exit completes
        the message, without content if nothing was fed. An exception or a cancellation marks the message interrupted.
        If the process dies, the message counts as abandoned `pace.lease` seconds after its last write; the next append
        then interrupts it. `message` has the id, the name and other fields of the answer, if you choose them; its
        content comes from what the draft is fed.

        With `format`, feed the events of a provider's stream (openai-chat, anthropic, openai-responses), as dicts or as
        the SDK's objects. The draft then stores what an append of the whole response, as a `Payload`, would store.

        A retry passes a `message` with the same id, or the same `idempotency_key`. If the message is finished, or was
        interrupted, the draft has `replayed=True` and the stored message, and ignores what it is fed. If another draft
        is still writing it, entering raises DraftLive. If the lease of that draft is over, because its process died,
        this draft takes its place, with the same id at the same position; if several try, only one succeeds. It starts
        the message again. With `resume=True` it keeps the stored content (`draft.message` has it) and adds the pieces
        to it; of a provider's response that continues stored content, it keeps the texts, the reasoning and the calls.
        The next write of the replaced draft raises DraftLost, and stores nothing.

        The other arguments are those of `messages.append`. With `reply_to=question`, the draft is the first message of
        a new branch, which becomes the active one, if an answer follows the question already.

        Entering the draft raises what `messages.append` raises. This call raises UnknownFormat and InvalidArgument.
        """
        require(STR, thread_id=thread_id)
        require(STR_OR_NONE, idempotency_key=idempotency_key, format=format)
        require(_PACE, pace=pace)
        require(BOOL, resume=resume)
        opened = _to_be_written(message)
        if resume and opened.message_id is None and idempotency_key is None:
            raise InvalidArgument(
                "resume", "needs the id or the idempotency_key of the message that is to be continued"
            )
        from chatledger.formats.streams import ResponseEvents

        source = None if format is None else ResponseEvents(format, limit=self._scope.limits.bytes)
        request = make_request(
            self._scope.terms,
            thread_id,
            [opened],
            create=create,
            run_id=run_id,
            idempotency_key=idempotency_key,
            expected=expected,
            branch=branch,
            after=read_after(thread_id, reply_to, alternative_to),
            on_open_calls=on_open_calls,
            rules=rules,
        )
        request = replace(request, lease=pace.lease, draft=Writer(new_stamp()), continues=resume)
        return Draft(self._scope, request, pace=pace, source=source)

    def attach(self, thread_id: str, message_id: str, token: str) -> Draft:
        """Go on with a draft that was opened elsewhere: `token` is its `draft.token`. Enter it as the draft of a
        `stream`. It has the stored content, and `draft.offset` tells where to go on. The draft that had the message
        before gets DraftLost from its next write.

        This also works after `draft.leave()`, and after the lease, until another writer takes the message over. A
        finished message is `replayed`. Entering raises ThreadNotFound and MessageNotFound first, DraftLost if the token
        is not that of the message's writer, and RunLost for the draft of an answer. This call raises InvalidArgument.
        """
        require(STR, thread_id=thread_id, message_id=message_id, token=token)
        opened = _to_be_written(ChatMessage(role="assistant", message_id=message_id))
        request = make_request(self._scope.terms, thread_id, [opened])
        return Draft(self._scope, replace(request, draft=Writer(read_token(token), new_stamp())), pace=PACE)

    async def sync(
        self,
        thread_id: str,
        messages: Messages,
        *,
        create: bool | NewThread = False,
        run_id: str | None = None,
        expected: Mark | None = None,
        branch: int | None = None,
        on_open_calls: OnOpenCalls = "error",
        rules: RulesLevel | None = None,
        on_difference: Literal["error", "branch"] = "error",
    ) -> Appended:
        """Store the messages that follow the stored ones, for a service that sends its whole history each time.

        `messages` must begin with all stored messages. The call compares their content, and their ids if they have any.
        Raises VersionConflict if a message differs or a stored one is missing, and if the branch changed since the mark
        `expected`. The result is `replayed` if no message is new, whatever is expected. The call reads the whole
        branch; if you know the new messages, `append` costs less. `create`, `run_id`, `rules` and `on_open_calls` are
        those of `append`.

        With `on_difference="branch"`, the messages from the first difference on are stored as `append(…, reply_to=…)`
        stores them: on a new branch, which becomes the active one and shares the equal messages. If the list ends
        before the stored history, the new branch ends there, without messages of its own. The same list again is
        `replayed`, also if you name the branch that it differs from; a repeat activates nothing. An id that the thread
        has already, with other content or on another branch than the rest, is an IdConflict.
        """
        require(STR, thread_id=thread_id)
        require(STR_OR_NONE, run_id=run_id, expected=expected)
        require(INT_OR_NONE, branch=branch)
        require(RULES_OR_NONE, rules=rules)
        require(ON_OPEN_CALLS, on_open_calls=on_open_calls)
        require(_ON_DIFFERENCE, on_difference=on_difference)
        sent, losses = await read_messages(self._scope, thread_id, messages, rules, create=create)
        require_messages(sent)
        if expected is not None:
            read_expected(expected, encode_key(thread_id, "thread_id"), branch)
        options: dict[str, Any] = {"run_id": run_id, "branch": branch, "rules": rules, "on_open_calls": on_open_calls}
        anew = on_difference == "branch"
        appended = await self._sync(thread_id, sent, options, expected=expected, anew=anew, create=create)
        return replace(appended, losses=losses) if losses else appended

    async def _sync(
        self,
        thread_id: str,
        messages: Sequence[ChatMessage],
        options: dict[str, Any],
        *,
        expected: Mark | None,
        anew: bool,
        create: bool | NewThread,
    ) -> Appended:
        branch = options["branch"]
        for last_attempt in (False, False, True):
            try:
                history = await self._scope.history(Asked.of(self._scope.tenant, thread_id, branch))
            except ThreadNotFound:
                if not create:
                    raise
                try:
                    return await self.append(thread_id, messages, create=create, expected=expected or 0, **options)
                except VersionConflict:  # another writer has just made the thread
                    if last_attempt:
                        raise
                    continue
            try:
                compared = await _encoded(messages, partial(compare, history, messages, replace_synthetic=anew))
            except OF_A_COPY as error:
                refuse_copies(messages, error)
                raise
            rest, parts = messages[compared.same :], compared.difference is not None
            if compared.difference is not None and not anew:
                raise VersionConflict(
                    "branch",
                    compared.same,
                    history.last_seq,
                    compared.difference,
                    thread_id=thread_id,
                    branch=history.branch,
                )
            if not rest and not parts:
                return Appended([], history.mark, history.last_seq, replayed=True)
            try:
                if not rest:
                    return await self._shorten(history, branch, compared.after, expected)
                make = partial(
                    make_request,
                    self._scope.terms,
                    thread_id,
                    rest,
                    expected=expected or history.mark,
                    after=After(compared.after) if parts else None,
                    **options,
                )
                request = await _encoded(rest, make)
                if parts and branch is not None:
                    return await self._part(request, branch)
                return await self._scope.append(request)
            except VersionConflict:  # somebody appended meanwhile, perhaps the same messages
                if last_attempt or expected is not None:
                    raise
        raise AssertionError("unreachable")

    async def _part(self, request: AppendRequest, branch: int) -> Appended:
        scope = self._scope
        window = Asked(request.tenant, request.thread, request.thread_id, branch)
        appended = await with_digests(
            request.digests, lambda: scope.write(lambda sql: part(sql, window, request), moves=request.thread)
        )
        scope.count(request, appended)
        return appended

    async def _shorten(self, history: Section, branch: int | None, at: int, expected: Mark | None) -> Appended:
        window = Asked.of(self._scope.tenant, history.thread_id, branch)
        mark = read_expected(expected or history.mark, window.thread, branch)
        return await self._scope.write(
            lambda sql: shorten(sql, window, at, mark, self._scope.rules), moves=window.thread
        )

    @names_removed("history")
    async def history(
        self,
        thread_id: str,
        window: Window | None = None,
        *,
        branch: int | None = None,
        run_id: str | None = None,
    ) -> History:
        """The finished messages of a branch (None: the active one) in order: the whole branch or a window of it, in one
        state. `history.draft` is the message at the end that is still being written, or was abandoned.

            history = await ledger.messages.history(thread_id, Newest(50))
            earlier = await ledger.messages.history(thread_id, Newest(50, before=history.previous_cursor))

        A window is a value: `Newest` and `Oldest` are pages, `Turns` and `Tokens` are what fits a prompt. Its position
        is the cursor of a history, a mark (the end of the branch at that time), or, together with `branch`, a seq. A
        cursor and a mark contain their branch, so a page never continues on another one. Each message is on one page,
        whether one reads backward or forward.

        `run_id` keeps only that run's messages of the window, so a page may have fewer than its count.

        `Tokens` returns the system and developer messages that the branch begins with, and after them the newest whole
        turns, as many as fit together. Raises LimitExceeded if not even the newest turn fits. Reads the returned turns
        plus one.

        A window of up to 1,000 messages, except by turns, tokens or run, is one statement on PostgreSQL. Its cost grows
        with the window, not with the thread; without a window, the call reads the whole branch.

        Raises ThreadNotFound, BranchNotFound, LimitExceeded, InvalidCursor for a position of another thread or branch,
        and InvalidArgument for arguments that do not go together.
        """
        asked = Asked.shown(self._scope.tenant, thread_id, window, branch, run_id)
        return history_of(await self._scope.history(asked))

    async def prompt(
        self,
        thread_id: str,
        format: PromptFormat,  # noqa: A002
        window: Turns | Tokens | Newest | None = None,
        *,
        branch: int | None = None,
    ) -> Prompt:
        """The history as the provider of the format accepts it, to send to the model.

            prompt = await ledger.messages.prompt(thread_id, "openai-chat", Turns(20))
            answer = await client.chat.completions.create(model="gpt-5", messages=prompt.payload)

        A history that the provider accepts comes back as it is stored. `.repairs` lists every change that it needed; no
        row changes. A draft is left out. The window is that of `history`; `Tokens` counts the stored messages, without
        what a repair adds.

        Raises UnknownFormat for a format that no provider stands behind, NothingToSend if the payload would have no
        message, such as that of an empty thread, EncodeError, and what `history` raises.
        """
        require(STR, format=format)
        from chatledger.formats.history import prompt, require_provider

        require_provider(format)  # before the read
        history = await self.history(thread_id, window, branch=branch)
        payload, repairs = await apart(lambda: prompt(format, history.messages), history.messages)
        return Prompt(payload, repairs, history)

    def iterate(self, thread_id: str, *, branch: int | None = None) -> AsyncIterator[ChatMessage]:
        """Yield all finished messages of a branch (None: the active one) in order. They are read in pages of 500, so
        that memory stays bounded.

        The first page decides on the branch and its end: messages that are appended later are not included. Raises
        ThreadNotFound and BranchNotFound.
        """
        require(STR, thread_id=thread_id)
        require(INT_OR_NONE, branch=branch)
        return self._iterate(thread_id, branch)

    async def _iterate(self, thread_id: str, branch: int | None) -> AsyncIterator[ChatMessage]:
        page = await self.history(thread_id, Oldest(PAGE), branch=branch)
        end = page.last_seq
        while True:
            for message in page.messages:
                if (message.seq or 0) > end:  # appended since: positions without a message made the page longer
                    return
                yield message
            if page.next_cursor is None or not page.messages or (page.messages[-1].seq or 0) >= end:
                return
            page = await self.history(thread_id, Oldest(PAGE, after=page.next_cursor))

    def follow(
        self, thread_id: str, *, cursor: Cursor | Mark | None = None, deltas: bool = False
    ) -> AsyncGenerator[ThreadChange, None]:
        """Yield each change of the active branch of a thread, once and in order, whichever process writes it. The
        iteration ends only by an error, or when the caller leaves it.

            history = await ledger.messages.history(thread_id)
            async with contextlib.aclosing(ledger.messages.follow(thread_id, cursor=history.mark)) as changes:
                async for change in changes:
                    print(change.kind, change.message)

        With the `cursor` of a change it continues after that change. With the `mark` of a history or of an
        append, it yields every change since that state; this may include a revision that the history already contained,
        of a message that the branch shares with another. Without `cursor` it begins when it is first iterated. A
        redaction and an output are no changes.

        With `deltas`, a message that is being written comes as the `pieces` that it grew by, and the follower tells
        abandoned drafts and the runs of the branch: see ThreadChange. Any cursor serves with and without.

        One statement every 250 ms asks for all threads that this process follows, or for those of one tenant under row-
        level security and on Citus; with `deltas` another one asks for their open runs. Only a thread that changed is
        read, once for all followers at the same position. A follower buffers at most 100 changes or 8 MiB while its
        caller is busy, and then reads on. While the database is away it tries again, at least every four seconds.

        Raises ThreadNotFound, also once the thread is deleted or erased; BranchNotFound and InvalidCursor for a cursor
        of another thread or database; StorageError once the ledger is closed; and the errors of a history that cannot
        be read.
        """
        require(STR, thread_id=thread_id)
        require(STR_OR_NONE, cursor=cursor)
        require(BOOL, deltas=deltas)
        if self._scope.guard is None:
            raise StorageError("a transaction sees no changes of others: follow the thread through the ledger")
        self._scope.guard.reading()
        window = Asked.of(self._scope.tenant, thread_id)
        start = None if cursor is None else read_start(cursor, window.thread)
        return follow(self._scope, window, start, deltas=deltas)

    async def get(self, thread_id: str, message_id: str) -> ChatMessage:
        """The message with that id, on any branch. Raises ThreadNotFound and MessageNotFound."""
        require(STR, thread_id=thread_id, message_id=message_id)
        window = Asked.of(self._scope.tenant, thread_id)
        return await self._scope.read(lambda sql: get_message(sql, window, message_id), snapshot=True)

    async def revise(self, thread_id: str, message: ChatMessage | str, new: ChatMessage) -> ChatMessage:
        """Change a stored message, given as it is or by its id, in its place, and return it: it gets the content,
        reasoning, name, response_metadata, custom_data, format and residual of `new`, and the arguments and extras of
        its calls. The change is visible on every branch that shares the message. `revisions` keeps the message as it
        was, until it is redacted or erased. A late repeat of its append stays a repeat.

        Everything else stays: role, ids, place, run, time, state, `is_error`, and the number, ids and names of the
        calls. Leave these None in `new`, or as they are. The change takes the next position of the branch that
        stores the message, so the branch's `last_seq` grows by one. If nothing differs, nothing is written.

        Raises, with nothing written: InvalidArgument for another value of a field that stays, and for a message that
        its writer left partial; LimitExceeded, ThreadNotFound and MessageNotFound; DraftLive while a draft is written
        at the end of the branch that stores the message; RuleViolation, at the level `ordered`, for arguments that are
        not JSON.
        """
        message_id = read_id(thread_id, message)
        require(_MESSAGE, new=new)
        make = partial(make_request, self._scope.terms, thread_id, [new])
        request = await _encoded([new], make)
        window = Asked.of(self._scope.tenant, thread_id)
        return await self._scope.write(
            lambda sql: revise_message(sql, window, request, message_id), moves=window.thread
        )

    async def revisions(
        self, thread_id: str, message: ChatMessage | str, *, skip: int = 0, limit: int | None = None
    ) -> Sequence[Revision]:
        """The changes of a message, given as it is or by its id, oldest first, each with the message as it was before
        the change. A message that was removed has them too. Empty if it never changed. `limit` of them (None: all),
        after the first `skip`. Raises InvalidArgument for a message that was never stored,
        ThreadNotFound, MessageNotFound, and LimitExceeded for a number below zero.
        """
        message_id = read_id(thread_id, message)
        part = part_of(skip, limit)
        window = Asked.of(self._scope.tenant, thread_id)
        return await self._scope.read(lambda sql: list_revisions(sql, window, message_id, part), snapshot=True)

    async def find(self, message_id: str) -> Sequence[ChatMessage]:
        """The messages with that id in all threads of the tenant, or of the user, in order of their thread ids.

            for message in await ledger.messages.find("request-17"):
                print(message.thread_id, message.branch, message.seq)

        An id is unique in its thread, and may occur in many threads. Returns the first 100; an index finds them.
        """
        require(STR, message_id=message_id)
        return await self._scope.read(lambda sql: find_messages(sql, self._scope.tenant, message_id), snapshot=True)

    async def erase(self, thread_id: str, message: ChatMessage | str, *, dry_run: bool = False) -> ChatMessage:
        """Permanently remove the content of a message, given as it is or by its id, and return the message. Removes
        text, reasoning, media, arguments, metadata, and the fields of its own format. Its position, role, ids and links
        stay, so the thread stays whole. A violation of R11 in the message records the time. Forks that share the
        message see the erased one. Its copies in `revisions` lose their content too. A late repeat of its append stays
        a repeat, and restores nothing. With `dry_run=True`, returns the message as it would be, and writes nothing.

        An id is that of the stored message, or else of the one that was removed last. Of other messages that were
        removed and had the same id, pass each as `revisions` has it.

        Raises ThreadNotFound and MessageNotFound.
        """
        require(STR, thread_id=thread_id)
        require(BOOL, dry_run=dry_run)
        place = read_place(thread_id, message, MESSAGE, named="message")
        if isinstance(message, ChatMessage) and message.branch is not None and message.seq is not None:
            place = Place(message.branch, message.seq)  # its id may be that of another message since it was removed
        known_id = message if isinstance(message, str) else message.message_id
        return await erase_at(self._scope, thread_id, place, known_id=known_id, dry_run=dry_run)

    async def search(
        self,
        query: str,
        *,
        thread_id: str | None = None,
        roles: Sequence[str] | None = None,
        kind: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> Page[Hit]:
        """The messages that contain the query, those of the thread with the latest activity first, and within a thread
        the newest first.

            page = await ledger.user("ada").messages.search("refund")
            for hit in page:
                print(hit.thread_id, hit.seq, f"{hit.before}[{hit.match}]{hit.after}")

        A message contains the query if its text, a tool's result, the name of a called tool or the arguments of a call
        do, without regard to case, to the width of letters (NFKC), and to the kind and number of blanks. Every
        substring is found, in any script. There are no stems and no typing errors, é is not e, and reasoning is not
        searched. The messages are those of each thread's active branch, archived threads included.

        `thread_id` searches one thread, `kind` threads of that kind. `roles` are the roles of the messages. `since` and
        `until` are about the time of a message; one at `until` is left out.

        A page reads at most 20,000 messages, or 16 MB of text, less if it takes long to compare. If it finds fewer than
        `limit` hits in them, the page has `complete=False` and a cursor, which continues with the same query and the
        same filters. A thread that gets messages between two pages moves to the front, and later pages do not come back
        to it. 1,000 messages take about 10 ms. Search by user (`ledger.user(…)`) or thread: without both, it reads
        the messages of the whole tenant.

        Raises InvalidArgument for a query of blanks, LimitExceeded for one of more than 1,000 characters and for a
        `limit` that is not 1 to 1,000, ThreadNotFound, and InvalidCursor also for the cursor of another search.
        """
        require(STR, query=query)
        require(STR_OR_NONE, thread_id=thread_id, kind=kind, cursor=cursor)
        require(INT, limit=limit)
        if roles is not None:
            require_items(STR, roles=roles)
        if thread_id is not None:
            encode_key(thread_id, "thread_id")
        request = SearchRequest(
            self._scope.tenant,
            Query(query),
            page_size(limit),
            thread_id=thread_id,
            roles=None if roles is None else frozenset(roles),
            kind=kind,
            since=read_moment("since", since),
            until=read_moment("until", until),
        )
        return await self._scope.read(lambda sql: search(sql, request, cursor), snapshot=True)

    async def pop(
        self, thread_id: str, *, branch: int | None = None, expected: Mark | None = None
    ) -> ChatMessage | None:
        """Remove the newest message of the branch (None: the active one), in place, and return it; None if the branch
        is empty. It is `rewind` by one message, at any level of the rules: the branch gets a new position and
        a new mark, and another branch that shares the message keeps it.

        The message's id is free again. But an append with an `idempotency_key` stays a repeat: called again, it returns
        its first result and stores nothing. The key does not identify messages with ids of their own, so an append of
        such messages alone is stored again.

        Raises ThreadNotFound, BranchNotFound, VersionConflict if the branch changed since the mark `expected`, and
        DraftLive while the message is being written.
        """
        require(STR, thread_id=thread_id)
        require(INT_OR_NONE, branch=branch)
        require(STR_OR_NONE, expected=expected)
        window = Asked.of(self._scope.tenant, thread_id, branch)
        mark = None if expected is None else read_expected(expected, window.thread, branch)
        return await self._scope.write(lambda sql: pop(sql, window, mark), moves=window.thread)

    async def rewind(
        self,
        thread_id: str,
        to: ChatMessage | str | None,
        *,
        branch: int | None = None,
        expected: Mark | None = None,
    ) -> Sequence[ChatMessage]:
        """Remove all messages after `to`, a message or its id, from the branch (None: the active one), in place, and
        return them in order; `to` None removes all. It makes no branch. Another branch that shares some of the messages
        keeps them.

        The rewind takes the next position of the branch: its `last_seq` grows, and no position is used again. The
        removed messages stay in `revisions`. With `expected`, a mark, it raises VersionConflict if the branch changed
        since. If no message follows `to`, nothing is written.

        Raises ThreadNotFound, BranchNotFound, MessageNotFound for a message that the branch does not have,
        DraftLive while the message at the end is being written, and LimitExceeded for more than 10,000 messages or 64
        MiB: rewind in steps then.
        """
        require(STR, thread_id=thread_id)
        require(INT_OR_NONE, branch=branch)
        require(STR_OR_NONE, expected=expected)
        place = read_place(thread_id, to, named="to")
        return await rewind_to(self._scope, thread_id, place, branch=branch, expected=expected)

    async def alternatives(self, thread_id: str, message: ChatMessage | str) -> Sequence[Alternative]:
        """The alternatives of a message, given as it is or by its id: that message, and the messages of other branches
        that follow the same message as it does. A user interface shows "2 of 3" with them.

            for number, one in enumerate(await ledger.messages.alternatives(thread_id, answer), start=1):
                print(number, one.message.text, "(shown)" if one.current else f"(activate branch {one.branch})")

        They come in the order of the branches that store them. A branch that ends before the place has none. `current`
        is about the active branch, or about the one that stores the message if the active one does not have it. The
        call runs up to eight short statements, however many alternatives there are. Raises ThreadNotFound and
        MessageNotFound.
        """
        require(STR, thread_id=thread_id)
        place = read_place(thread_id, message, MESSAGE, named="message")
        return await alternatives_of(self._scope, thread_id, place)

    async def remove(self, thread_id: str, message: ChatMessage | str) -> ChatMessage:
        """Remove a message, given as it is or by its id, from every branch that shares it, and return it. Each of these
        branches gets a new position and a new mark. `revisions` keeps the message.

        A call and its result belong together: RuleViolation (R6) refuses to remove one of them, unless the thread is
        lenient. Then the other one stays alone, and its violations say so. A call without its result is open again, and
        the later turns record that they began meanwhile (R8).

        Raises ThreadNotFound, MessageNotFound, and DraftLive while the message at the end of such a branch is being
        written. An abandoned message at the end is interrupted, as by an append.
        """
        message_id = read_id(thread_id, message)
        window = Asked.of(self._scope.tenant, thread_id)
        return await self._scope.write(
            lambda sql: retract(sql, window, message_id, self._scope.rules), moves=window.thread
        )

    async def close_open_calls(
        self, thread_id: str, *, reason: str = INTERRUPTED, branch: int | None = None
    ) -> Appended:
        """Answer every open call of a branch (None: the active one) with a synthetic result whose text is `reason`, and
        mark an abandoned partial message at the end as interrupted. The branch then accepts any message again. If
        nothing is open, nothing is written.

        Raises ThreadNotFound, BranchNotFound, and DraftLive if the writer of the partial message holds its lease;
        `drafts.interrupt` cuts that message short.
        """
        require(STR, thread_id=thread_id, reason=reason)
        require(INT_OR_NONE, branch=branch)
        request = make_request(self._scope.terms, thread_id, [], branch=branch, on_open_calls="close")
        return await self._scope.write(lambda sql: close_open_calls(sql, request, reason), moves=request.thread)


def read_after(
    thread_id: str, reply_to: ChatMessage | str | None, alternative_to: ChatMessage | str | None
) -> After | None:
    """Where a batch is stored; None is the end of the branch. Raises InvalidArgument and MessageNotFound."""
    if reply_to is None and alternative_to is None:
        return None
    if reply_to is not None and alternative_to is not None:
        raise InvalidArgument("alternative_to", "cannot be combined with reply_to; pass one of them")
    named, message = ("reply_to", reply_to) if alternative_to is None else ("alternative_to", alternative_to)
    place = read_place(thread_id, message, MESSAGE, named=named)
    assert place is not None
    return After(encode_key(place, named) if isinstance(place, str) else place, beside=alternative_to is not None)


def _to_be_written(message: ChatMessage | None) -> ChatMessage:
    """The message that a draft opens. Raises InvalidArgument for one that has content already."""
    if message is None:
        return ChatMessage(role="assistant", state="partial")
    require(_MESSAGE, message=message)
    if message.role != "assistant":
        raise InvalidArgument("message", f"must have the role assistant, not {message.role!r}")
    filled = next((name for name in ("content", "reasoning", "tool_calls") if getattr(message, name) is not None), None)
    if filled is not None:
        raise InvalidArgument("message", f"has {filled}; the draft takes the content from what it is fed")
    return message.model_copy(update={"state": "partial"})


async def _encoded(messages: Sequence[Any], make: Callable[[], T], beside: Any = None) -> T:
    """What `make` makes of the messages and of a value beside them; in a thread if they are long, so that the event
    loop goes on.
    """
    return await in_thread(make) if is_long_batch(messages, beside) else make()
