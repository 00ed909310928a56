"""A plain model of a tenant: lists and dictionaries that say what must be stored after any calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chatledger import ChatMessage, Mark, TextPart, ToolCall
from chatledger.models import CallPlace
from chatledger.models.messages import is_redacted

Scope = tuple[str, ...]
Place = tuple[int, int]
"""The branch that stores a message, and its seq."""


@dataclass
class ModelBranch:
    """The messages along its path, and its version: the position of its last message or change."""

    path: list[ChatMessage] = field(default_factory=list)
    end: int = 0
    writes: int = 0
    """How often its row was written, which makes every mark of it stale."""

    def extend(self, messages: Sequence[ChatMessage]) -> None:
        self.path.extend(messages)
        self.end += len(messages)
        self.writes += 1

    @property
    def is_live(self) -> bool:
        """Whether somebody is still writing the last message."""
        return bool(self.path) and self.path[-1].state == "partial"


@dataclass
class Change:
    """A row of `revisions`. `place` is where the message stands or stood, `seq` the position that the change took."""

    kind: str
    message: ChatMessage | None
    branch: int
    seq: int
    place: Place


@dataclass
class Preflight:
    mark: Mark
    branch: int
    writes: int


@dataclass
class ModelThread:
    title: str | None = None
    user_id: str | None = None
    metadata: dict[str, Any] | None = None
    version: int = 0
    archived: bool = False
    branches: list[ModelBranch] = field(default_factory=lambda: [ModelBranch()])
    active: int = 0
    marks: list[Preflight] = field(default_factory=list)
    """Marks of branches that were active then."""
    forms: dict[str, list[ChatMessage]] = field(default_factory=dict)
    """The forms that a stored message had before it was revised or redacted, by its id."""
    changes: dict[str, list[Change]] = field(default_factory=dict)
    """By the id of the message, in order."""
    rows: int = 0
    """The rows of `revisions`: a retraction has one for each branch that had the message."""

    @property
    def branch(self) -> ModelBranch:
        return self.branches[self.active]

    @property
    def path(self) -> list[ChatMessage]:
        return self.branch.path

    @property
    def end(self) -> int:
        return self.branch.end

    @property
    def is_live(self) -> bool:
        return self.branch.is_live

    @property
    def is_open(self) -> bool:
        return bool(open_calls(self.path))

    def extend(self, messages: Sequence[ChatMessage]) -> None:
        self.branch.extend(messages)

    def begin_branch(self, shared: Sequence[ChatMessage], end: int, *, activate: bool = True) -> None:
        self.branch.writes += 1  # the branch that was active until then
        self.branches.append(ModelBranch(list(shared), end))
        if activate:
            self.active = len(self.branches) - 1

    def is_current(self, mark: Preflight) -> bool:
        return mark.branch == self.active and mark.writes == self.branch.writes

    # --- Messages by id

    def holders(self, id_: str | None) -> list[int]:
        """The numbers of the branches that have the message on their path."""
        numbered = enumerate(self.branches)
        return [number for number, branch in numbered if any(one.message_id == id_ for one in branch.path)]

    def now(self, id_: str | None) -> ChatMessage | None:
        """The message as it stands on any branch."""
        return next((one for branch in self.branches for one in branch.path if one.message_id == id_), None)

    def all_messages(self) -> list[ChatMessage]:
        """Each stored message once, in the order of branch and seq."""
        messages = {place_of(one): one for branch in self.branches for one in branch.path}
        return [messages[place] for place in sorted(messages)]

    def is_half_of_a_pair(self, message: ChatMessage) -> bool:
        """Whether it is a result, or has a call that a result answers on some branch."""
        paths = [self.branches[number].path for number in self.holders(message.message_id)]
        answered = {place.seq for path in paths for place, _ in answers(path).values()}
        return message.role == "tool" or message.seq in answered

    def first_result(self, batch: Iterable[ChatMessage]) -> list[ChatMessage]:
        """The result of a repeat under a key: each message as it is now, or in the form in which it was appended."""
        return [self.now(one.message_id) or self._removed(one) for one in batch]

    def _removed(self, appended: ChatMessage) -> ChatMessage:
        kept = [one.message for one in self.changes[appended.message_id or ""] if one.message is not None]
        return next((form for form in kept if form.content == appended.content), kept[-1])

    # --- Changes

    def replace(self, new: ChatMessage) -> None:
        """On every branch that has it."""
        id_ = new.message_id or ""
        old = self.now(id_)
        assert old is not None
        if old != new:
            self.forms.setdefault(id_, []).append(old)
        for branch in self.branches:
            branch.path[:] = [new if one.message_id == id_ else one for one in branch.path]

    def revise(self, old: ChatMessage, new: ChatMessage) -> None:
        number = old.branch or 0
        self.record("revised", [old], number)
        self.branches[number].end += 1
        for holder in {number, *self.holders(old.message_id)}:
            self.branches[holder].writes += 1
        self.replace(new)

    def rewind(self, number: int, to: int) -> list[ChatMessage]:
        branch = self.branches[number]
        removed = [one for one in branch.path if (one.seq or 0) > to]
        if removed:
            self.record("popped", removed, number)
            self._remove(removed, [number])
        return removed

    def retract(self, message: ChatMessage) -> None:
        holders = self.holders(message.message_id)
        self.record("retracted", [message], holders[0])
        self.rows += len(holders) - 1
        self._remove([message], holders)

    def _remove(self, removed: Sequence[ChatMessage], numbers: Sequence[int]) -> None:
        places = [place_of(one) for one in removed]
        for number in numbers:
            branch = self.branches[number]
            branch.path[:] = [one for one in branch.path if place_of(one) not in places]
            branch.end += 1
            branch.writes += 1
        for message in removed:
            if self.now(message.message_id) is None:
                self.forms.pop(message.message_id or "", None)
        # The first removal of a thread is noted on all its branches, so nothing is said of marks of the others.
        self.marks = [mark for mark in self.marks if mark.branch in numbers]

    def record(self, kind: str, messages: Sequence[ChatMessage], number: int) -> None:
        at = self.branches[number].end + 1
        for one in messages:
            change = Change(kind, one, number, at, place_of(one))
            self.changes.setdefault(one.message_id or "", []).append(change)
        self.rows += len(messages)

    def redact(self, redacted: ChatMessage) -> None:
        """Also in what the changes keep of it."""
        if self.now(redacted.message_id) is not None:
            self.replace(redacted)
            for branch in self.branches:
                branch.writes += 1
        for change in self.changes.get(redacted.message_id or "", []):
            if change.place == place_of(redacted) and change.message is not None:
                change.message = None if change.kind == "revised" else redacted


@dataclass
class Model:
    threads: dict[str, ModelThread] = field(default_factory=dict)
    runs: dict[str, tuple[str, str]] = field(default_factory=dict)
    """The thread and the status of each."""
    scores: list[tuple[str, str, float]] = field(default_factory=list)
    keys: dict[tuple[str, str], list[ChatMessage]] = field(default_factory=dict)
    """The messages that were appended to a thread with an idempotency key."""
    values: dict[Scope, dict[str, tuple[Any, int]]] = field(default_factory=dict)
    """Each value with its version."""
    versions: dict[tuple[Scope, str], int] = field(default_factory=dict)
    """The highest version that a value ever had, also one that was deleted."""

    def forget(self, thread: str) -> None:
        """The thread with all that is its own."""
        del self.threads[thread]
        runs = {run for run, (of, _) in self.runs.items() if of == thread}
        self.runs = {run: said for run, said in self.runs.items() if run not in runs}
        self.scores = [score for score in self.scores if score[0] not in runs]
        self.keys = {place: said for place, said in self.keys.items() if place[0] != thread}
        self.values = {scope: said for scope, said in self.values.items() if scope[:2] != ("thread", thread)}

    def put(self, scope: Scope, key: str, value: Any, version: int) -> None:
        """Versions never go back, not even where a value was deleted."""
        before = self.values.get(scope, {}).get(key)
        if before is not None:
            assert version == before[1] + 1
        assert version > self.versions.get((scope, key), 0)
        self.values.setdefault(scope, {})[key] = value, version
        self.versions[scope, key] = version

    def version(self, scope: Scope, key: str) -> int:
        return self.values.get(scope, {}).get(key, (None, 0))[1]


# --- Messages ---------------------------------------------------------------------------------------------------------


def place_of(message: ChatMessage) -> Place:
    return message.branch or 0, message.seq or 0


def open_calls(path: Sequence[ChatMessage]) -> list[str]:
    """The ids of the calls at the end that have no result. Strict rules let nothing else come before their results."""
    waiting: list[str] = []
    for message in path:
        if message.tool_calls:
            waiting = [call.id or "" for call in message.tool_calls]
        elif message.role == "tool":
            waiting.remove(message.tool_call_id or "")
    return waiting


def answers(path: Sequence[ChatMessage]) -> dict[str | None, tuple[CallPlace, bool]]:
    """The call that each result on the path answers, by its id, and whether no position between them is empty."""
    found: dict[str | None, tuple[CallPlace, bool]] = {}
    calls: dict[str | None, tuple[int, CallPlace]] = {}
    for index, message in enumerate(path):
        for idx, call in enumerate(message.tool_calls or ()):
            calls[call.id] = index, CallPlace(seq=message.seq or 0, index=idx)
        if message.role == "tool":
            at, place = calls[message.tool_call_id]
            found[message.message_id] = place, (message.seq or 0) - place.seq == index - at
    return found


def without_words(message: ChatMessage) -> ChatMessage:
    """As a redaction leaves it, but for the violation that records it."""
    calls = message.tool_calls
    words: dict[str, Any] = dict.fromkeys(("reasoning", "response_metadata", "custom_data", "format", "residual"))
    if isinstance(message.content, list):
        words["content"] = [TextPart(text="[redacted]")] if message.content else []
    else:
        words["content"] = message.content and "[redacted]"
    if calls is not None:
        words["tool_calls"] = [
            ToolCall(id=one.id, name=one.name, arguments=None if one.arguments is None else "{}") for one in calls
        ]
    return message if is_redacted(message) else message.model_copy(update=words)
