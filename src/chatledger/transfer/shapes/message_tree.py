"""Message trees, as Open Assistant exports them: `{"message_tree_id", "prompt": {…, "replies": [{…}, …]}}`.

The first reply to a message continues its branch, and every other reply begins a new branch. So each message is stored
once, however many replies it has. Branches are numbered in the order of a depth-first search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chatledger.errors import DecodeError
from chatledger.formats.losses import codes
from chatledger.formats.wire.residual import keep, restore
from chatledger.models import ChatMessage, Loss, RulesLevel
from chatledger.models.json import JsonValue
from chatledger.models.messages import LENIENT
from chatledger.transfer.envelope import Location
from chatledger.transfer.fields import require_path
from chatledger.transfer.shapes.shape import BranchMessages, Conversation, Measured

NAME = "oasst"
ROOT, REPLIES = "prompt", "replies"
_ROLES = {"prompter": "user", "assistant": "assistant"}
_WORDS = {role: word for word, role in _ROLES.items()}


class MessageTree:
    name = NAME
    branching = True

    def recognises(self, record: JsonValue) -> bool:
        root = record.get(ROOT) if isinstance(record, dict) else None
        return isinstance(root, dict) and _is_node(root) and isinstance(root.get(REPLIES), list)

    def locate(self, record: JsonValue, fieldname: str | None) -> Location:
        path = require_path(record, fieldname or ROOT)
        return Location(path[:-1], path[-1:])

    def identify(self, record: JsonValue, payload: JsonValue) -> JsonValue:
        """The tree's own id, so that the tree can grow."""
        own = record.get("message_tree_id")
        return own if isinstance(own, str) and own else payload

    def decode(self, payload: JsonValue, rules: RulesLevel) -> Conversation:
        branches: list[BranchMessages] = []
        sources: list[list[JsonValue]] = []
        waiting: list[tuple[JsonValue, str, int, int]] = [(payload, ROOT, 0, 0)]
        while waiting:  # a loop, since a deep tree would exceed the limit of recursion
            node, path, parent, at = waiting.pop()
            number = len(branches)
            branches.append(BranchMessages([], parent, at))
            sources.append([])
            begun = []
            while True:
                branches[number].messages.append(_read(node, path, lenient=rules == "lenient"))
                sources[number].append(node)
                seq = at + len(branches[number].messages)
                replies = _replies(node, path)
                begun += [(reply, f"{path}.{REPLIES}[{n}]", number, seq) for n, reply in enumerate(replies) if n]
                if not replies:
                    break
                node, path = replies[0], f"{path}.{REPLIES}[0]"
            waiting += reversed(begun)
        return Conversation(branches, sources=[node for branch in sources for node in branch])

    def encode(self, branches: Sequence[BranchMessages], *, alone: bool = True, carry: bool = False) -> Measured:
        lost: list[Loss] = []
        roots: list[JsonValue] = []
        bare: list[dict[str, JsonValue]] = []
        replies: dict[tuple[int, int], list[JsonValue]] = {(0, 0): roots}
        for number, branch in enumerate(branches):
            before = (branch.parent, branch.at)
            for seq, message in enumerate(branch.messages, branch.at + 1):
                node = _write(message, lost)
                if REPLIES not in node:
                    bare.append(node)
                replies.setdefault(before, []).append(node)
                before = (number, seq)
                replies[before] = node.setdefault(REPLIES, [])
        for node in bare:  # its source had no list of replies, and none was added since
            if not node[REPLIES]:
                del node[REPLIES]
        lost.extend(Loss("branch", None, "") for _ in roots[1:])
        return Measured(roots[0] if roots else None, lost)


SHAPE = MessageTree()


def _is_node(node: Any) -> bool:
    return isinstance(node, dict) and isinstance(node.get("text"), str) and isinstance(node.get("role"), str)


def _replies(node: dict[str, JsonValue], path: str) -> list[JsonValue]:
    replies = node.get(REPLIES, [])
    if not isinstance(replies, list):
        raise DecodeError(f"{path}.{REPLIES}", "a list of messages is expected")
    return replies


def _read(node: JsonValue, path: str, *, lenient: bool) -> ChatMessage:
    if not _is_node(node):
        raise DecodeError(path, "a message with a text and a role is expected")
    word = node["role"]
    if word not in _ROLES and not lenient:
        raise DecodeError(f"{path}.role", f"unknown role {word[:80]!r}; use one of {', '.join(_ROLES)}")
    own = node.get("message_id")
    fields = {
        "role": _ROLES.get(word, word),
        "content": node["text"],
        "message_id": own if isinstance(own, str) and own else None,
        "format": NAME,
    }
    message = ChatMessage.model_validate(fields, context=LENIENT)
    alone = {key: [] if key == REPLIES else value for key, value in node.items()}
    return message.model_copy(update={"residual": keep(alone, _node(message))})


def _node(message: ChatMessage) -> dict[str, JsonValue]:
    node = {"message_id": message.message_id, "text": message.text, "role": _WORDS.get(message.role, message.role)}
    return {**node, REPLIES: []}


def _write(message: ChatMessage, lost: list[Loss]) -> dict[str, JsonValue]:
    if message.format != NAME:
        _note_unsaid(message, lost)
        return _node(message)
    return restore(_node(message), message.residual)


_UNSAID = {
    **{name: code for name, code in codes.FIELDS.items() if name not in ("role", "state")},
    "reasoning": codes.REASONING,
    "tool_calls": codes.CALLS,
}
"""Fields that a node of a tree cannot hold, with the codes of their losses."""


def _note_unsaid(message: ChatMessage, lost: list[Loss]) -> None:
    if isinstance(message.content, list):
        lost.append(Loss(codes.CONTENT_FORM, message.seq, "content"))
    for name, code in _UNSAID.items():
        if getattr(message, name) is not None:
            lost.append(Loss(code, message.seq, name))
