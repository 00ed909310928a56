"""Checks for the tests of other projects.

from chatledger.testing import check_format

def test_our_format() -> None:
    check_format(CODEC, [payload, another])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

from chatledger.errors import EncodeError, FormatError, InvalidArgument, MissingExtra
from chatledger.formats import Codec, ModelCodec, Written, asked_before, format_names, get_codec, in_kind
from chatledger.formats.codec import Decoded, checked
from chatledger.formats.losses.capabilities import SAMPLES
from chatledger.formats.losses.measure import losses_between, write
from chatledger.models import LENIENT, ChatMessage, Loss, TextPart
from chatledger.models.json import MAX_DEPTH, json_problem, same_json

__all__ = ["check_format"]

_SHOWN = 20
_PLACES = 40
"""Maximum number of places of a sample that are changed, and of windows of each kind, so that the time of the check
does not grow with the square of a sample.
"""
_OTHERS: Sequence[object] = (None, True, 7, "", "?", [], {}, [None], {"?": None}, object())
_EDITS: Sequence[dict[str, Any]] = (
    {"content": "edited"},
    {"content": None},
    {"content": [TextPart(text="edited"), TextPart(text="twice")]},
    {"role": "custom"},
    {"name": "ada", "is_error": True, "run_id": "run", "state": "interrupted"},
    {"tool_calls": None, "tool_call_id": None},
    {"reasoning": "because"},
    {"residual": None},
    {"residual": "of another release"},
    {"residual": {"keys": 1, "extra": [], "inner": 2}},
)


def check_format(codec: Codec, samples: Iterable[object]) -> None:
    """Check that a codec keeps the promises that chatledger relies on. The codec need not be registered.

    `samples` are payloads of the format: JSON, or the objects of a codec that has `as_models`. Real payloads that
    differ from each other find the most errors. The check uses the samples, their messages cut and edited, samples with
    an error in them, and conversations of every other known format:

    - *identity*: a sample comes back equal, with the order of its keys; lenient rules read the same.
    - *storage*: the ledger stores its messages as they were decoded.
    - *windows*: a page of them, wherever it is cut, is written and read.
    - *conversion*: the codec writes messages of every other format, and every other format writes those of the samples.
    - *losses*: they can be measured: `encode` reports which messages it wrote each message of its payload from.
    - *errors*: a payload that is not of the format raises a FormatError, and `recognises` raises nothing.
    - *detection*: no format that is asked earlier recognises a sample that this one recognises, and this one recognises
      no payload of another format.

    Raises AssertionError with a list of the problems, and InvalidArgument without samples or for an object that is no
    codec. Takes about a second.
    """
    payloads = list(samples)
    if not payloads:
        raise InvalidArgument("samples", "must hold a payload of the format at least")
    check = _Check(checked(codec))
    for index, payload in enumerate(payloads):
        check.sample(f"sample {index}", payload)
    check.foreign()
    check.hostile("a value that is no payload", _OTHERS)
    if check.problems:
        raise AssertionError(_report(codec.name, list(check.problems)))


def _report(name: str, problems: Sequence[str]) -> str:
    more = [f"… and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
    return "\n- ".join([f"the format {name!r} has {len(problems)} problems:", *problems[:_SHOWN], *more])


class _Check:
    """The problems of a codec, each once."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.problems: dict[str, None] = {}
        self._earlier = [get_codec(name) for name in asked_before(codec)]
        self._others = [get_codec(name) for name in format_names() if name != codec.name]

    def sample(self, where: str, payload: object) -> None:
        before = _spelled(payload)
        decoded = self._decode(where, payload, rules="strict")
        if decoded is None:
            return
        lenient = self._decode(where, payload, rules="lenient")
        if _spelled(payload) != before:
            self._note(where, "decode changes the payload")
        if decoded.losses or (lenient is not None and _spelled(lenient) != _spelled(decoded)):
            self._note(where, "lenient rules do not read it as strict rules do, without losses")
        self._identity(where, payload, decoded.messages)
        self._detection(where, payload)
        messages = [
            self._stored(f"{where}, message {index}", message) for index, message in enumerate(decoded.messages)
        ]
        messages = _numbered(messages)
        for cut, window in _windows(messages):
            self._written(f"{where}, messages {cut}", window)
        for changes in _EDITS:
            edited = [message.model_copy(update=changes) for message in messages]
            self._written(f"{where}, its messages with {changes}", edited)
        for other in self._others:
            self._conversion(f"{where} as {other.name}", other, messages)
        self.hostile(f"{where} with an error", _with_errors(payload))

    def foreign(self) -> None:
        """Conversations of every other format, and some that no format made."""
        self._written("no messages", [])
        for thing, sample in SAMPLES.items():
            for messages in sample.alternatives:
                self._written(thing, messages)
        for other in self._others:
            for thing, sample in SAMPLES.items():
                payload = other.encode(sample.alternatives[0]).payload
                messages = _numbered(other.decode(payload, rules="lenient").messages)
                self._written(f"{thing} of {other.name}", messages)
                self._theft(thing, other, payload)

    def hostile(self, where: str, payloads: Iterable[object]) -> None:
        """Payloads with errors in them. If strict rules accept a payload all the same, it comes back equal."""
        for payload in payloads:
            self._recognises(where, payload)
            self._decode(where, payload, rules="lenient", refusals=FormatError)
            decoded = self._decode(where, payload, rules="strict", refusals=FormatError)
            if decoded is not None:
                self._accepted(f"{where}, {_spelled(payload)[:200]}", payload, decoded.messages)

    def _accepted(self, where: str, payload: object, messages: Sequence[ChatMessage]) -> None:
        """A payload that strict rules accept comes back equal, unless classes fill in what it leaves out."""
        if messages and not isinstance(self.codec, ModelCodec):
            self._identity(where, payload, messages)

    def _identity(self, where: str, payload: object, messages: Sequence[ChatMessage]) -> None:
        wrong = {message.format for message in messages} - {self.codec.name}
        if wrong:
            self._note(where, f"decode gives messages with the format {wrong.pop()!r}")
        before = _spelled(messages)
        encoded = self._encoded(where, messages)
        if encoded is None:
            return
        if _spelled(messages) != before:
            self._note(where, "encode changes the messages")
        back = self._decode(f"{where}, written", encoded.payload, rules="lenient")
        losses = [] if back is None else losses_between(messages, back.messages, encoded)
        if losses:
            self._note(where, f"what decode gave is not what it gives after encode: {_listed(losses)}")
        if json_problem(payload, max_depth=MAX_DEPTH) is None:
            if not same_json(encoded.payload, payload):
                self._note(where, f"does not come back equal, but as {_spelled(encoded.payload)[:200]}")
        elif isinstance(self.codec, ModelCodec):
            back = self._call(where, "as_models", lambda: in_kind(self.codec, encoded.payload, messages, None))
            if back != payload:
                self._note(where, f"does not come back as equal objects, but as {_spelled(back)[:200]}")
        self._models(where, encoded.payload, messages)

    def _models(self, where: str, payload: Any, messages: Sequence[ChatMessage]) -> None:
        """The payload as objects, where the format has some and their package is installed, reads as the payload."""
        if isinstance(self.codec, ModelCodec):
            refusals = (EncodeError, MissingExtra)
            models = self._call(where, "as_models", lambda: in_kind(self.codec, payload, messages, "models"), refusals)
            decoded = None if models is None else self._decode(f"{where} as objects", models, rules="lenient")
            if decoded is not None and not same_json(self.codec.encode(decoded.messages).payload, payload):
                self._note(where, "is another payload after it was objects")

    def _stored(self, where: str, message: ChatMessage) -> ChatMessage:
        """The message as the ledger gives it back."""
        read = self._call(
            where, "validation", lambda: ChatMessage.model_validate(message.model_dump(), context=LENIENT)
        )
        if read is None or _spelled(read) != _spelled(message):
            self._note(where, "is not what the ledger would give back of it")
        return message if read is None else read

    def _conversion(self, where: str, other: Codec, messages: Sequence[ChatMessage]) -> None:
        encoded = self._call(where, "encode", lambda: other.encode(messages))
        if encoded is not None:
            self._call(where, "decode", lambda: other.decode(encoded.payload, rules="lenient"))

    def _written(self, where: str, messages: Sequence[ChatMessage]) -> None:
        """The messages are written, with and without `carry`, as a payload whose losses can be measured."""
        for carry in (False, True):
            encoded = self._encoded(where, messages, carry=carry)
            if encoded is None:
                return
            problem = json_problem(encoded.payload, max_depth=2 * MAX_DEPTH)
            if problem is not None:
                self._note(where, f"encode gives a payload that is not JSON: {problem[0]} {problem[1]}")
            decoded = self._decode(f"{where}, written", encoded.payload, rules="lenient")
            if decoded is not None:
                self._origins(where, messages, encoded, len(decoded.messages))

    def _encoded(self, where: str, messages: Sequence[ChatMessage], *, carry: bool = False) -> Written | None:
        """The messages as the library writes them: without values that are too deep."""
        encoded = self._call(where, "encode", lambda: self.codec.encode(messages, carry=carry))
        if isinstance(encoded, Written):
            return write(self.codec, messages, carry=carry)
        if encoded is not None:
            self._note(where, f"encode must return a Written, not {type(encoded).__name__}")
        return None

    def _origins(self, where: str, messages: Sequence[ChatMessage], encoded: Written, read: int) -> None:
        """Each message that was read has origins. After an edit, a payload may join messages that it did not before."""
        origins = list(encoded.origins() if callable(encoded.origins) else encoded.origins)
        sources = {source for origin in origins for source in origin}
        if len(origins) < read or not sources <= {*range(len(messages))}:
            self._note(where, f"the origins are {origins} for {len(messages)} messages read as {read}")
        own = {index for index, message in enumerate(messages) if message.format == self.codec.name}
        if not own.issuperset(encoded.kept):
            self._note(where, f"kept are {sorted(encoded.kept)}, but only {sorted(own)} are of the format")

    def _detection(self, where: str, payload: object) -> None:
        if self._recognises(where, payload):
            for other in self._earlier:
                if other.recognises(payload):
                    self._note(where, f"{other.name} is sure of it as well and asked first: give the codec `before`")

    def _theft(self, thing: str, other: Codec, payload: object) -> None:
        """Whether this codec is asked first about a payload of another format, and recognises it."""
        if other in self._earlier or not other.recognises(payload) or not self._recognises(thing, payload):
            return
        if not any(earlier.recognises(payload) for earlier in self._earlier):
            self._note(other.name, f"recognises is sure of its payloads too: {_spelled(payload)[:200]}")

    def _recognises(self, where: str, payload: object) -> bool:
        sure = self._call(where, "recognises", lambda: self.codec.recognises(payload))
        if not isinstance(sure, bool):
            self._note(where, "recognises must return True or False")
        return sure is True

    def _decode(
        self, where: str, payload: object, *, rules: Any, refusals: type[Exception] | tuple[type[Exception], ...] = ()
    ) -> Decoded | None:
        outcome = self._call(where, f"decode at {rules}", lambda: self.codec.decode(payload, rules=rules), refusals)
        return outcome if isinstance(outcome, Decoded) else None

    def _call(
        self,
        where: str,
        doing: str,
        call: Callable[[], Any],
        refusals: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> Any:
        """The result of the call; None if it raises an error, which is a problem unless the call may raise it."""
        try:
            return call()
        except refusals:
            return None
        except Exception as error:  # whatever the code of others raises
            self._note(where, f"{doing} raised {type(error).__name__}: {str(error)[:200]}")
            return None

    def _note(self, where: str, what: str) -> None:
        self.problems[f"{where}: {what}"] = None


def _spelled(value: object) -> str:
    """A value as text in which NaN equals NaN."""
    return repr(value)


def _listed(losses: Iterable[Loss]) -> str:
    return ", ".join(sorted(f"{loss.code} of message {loss.seq} at {loss.path or 'the whole'}" for loss in losses))


def _numbered(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with what the ledger gives each of them."""
    return [
        message.model_copy(update={"seq": seq, "message_id": f"m{seq}", "thread_id": "t", "branch": 0})
        for seq, message in enumerate(messages, 1)
    ]


def _windows(messages: Sequence[ChatMessage]) -> Iterator[tuple[str, Sequence[ChatMessage]]]:
    """The messages from each place on, up to each place, and by two."""
    step = len(messages) // _PLACES + 1
    for place in range(0, len(messages), step):
        for start, end in ((place, len(messages)), (0, place), (place, place + 2)):
            yield f"{start + 1} to {min(end, len(messages))}", messages[start:end]


def _with_errors(payload: object) -> Iterator[object]:
    """The payload with another value in one place, or without it. Only of JSON: objects may bear no change."""
    if json_problem(payload, max_depth=MAX_DEPTH) is not None:
        return
    steps = list(_steps(payload))
    for path in steps[:: len(steps) // _PLACES + 1]:
        for other in _OTHERS:
            changed = deepcopy(payload)
            holder: Any = changed
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = other
            yield changed
        left_out = deepcopy(payload)
        holder = left_out
        for step in path[:-1]:
            holder = holder[step]
        del holder[path[-1]]
        yield left_out


def _steps(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value below this one."""
    if isinstance(value, (dict, list)):
        for step in value if isinstance(value, dict) else range(len(value)):
            yield (*above, step)
            yield from _steps(value[step], (*above, step))
