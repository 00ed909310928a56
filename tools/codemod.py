"""Rewrites programs from the calls before 0.1.0 to those of 0.1.0: Python files, and the Python of Markdown pages.

    python tools/codemod.py FILE_OR_FOLDER …        then: ruff check --fix && ruff format

It reads no types, so it changes only what a name alone tells, and leaves the rest to a type checker.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import chatledger
from chatledger import admin, errors, types

Source = Callable[[ast.expr], str]
Change = Callable[[ast.Call, Source], str | None]

ERRORS = {
    "RevisionConflict": ("VersionConflict", 'about("thread")'),
    "KvConflict": ("VersionConflict", 'about("value")'),
    "AlreadyExists": ("IdConflict", None),
    "KeyUnavailable": ("EncryptionError", 'because("no-key")'),
    "NotAuthentic": ("EncryptionError", 'because("not-authentic")'),
    "NotEncrypted": ("EncryptionError", 'because("not-encrypted")'),
    "TenantEncrypted": ("EncryptionError", 'because("tenant-encrypted")'),
}
"""Old errors: the new one, and the check that a test passes to `pytest.raises` so that it still tells them apart."""
HOMES = {
    "types": frozenset(types.__all__),
    "errors": frozenset(errors.__all__) - frozenset(chatledger.__all__),
    "admin": frozenset(admin.__all__),
}
"""The names that left `chatledger` for a module of it."""
_RAISES = re.compile(rf"pytest\.raises\(({'|'.join(ERRORS)})\b(?=[,)])")
_NAMES = re.compile(rf"\b({'|'.join(ERRORS)})\b")


def rewrite(text: str) -> str:
    text, count = _RAISES.subn(_checked, text)
    if count:
        text = _with_import(text, re.findall(r"check=(about|because)\(", text))
    text = _NAMES.sub(lambda found: ERRORS[found[1]][0], text)
    text = re.sub(r"\bPartialMessage\b", "OpenDraft", text)
    text = re.sub(r"\b(messages|feedback)\.retract\b", r"\1.remove", text)
    text = re.sub(r"\bawait ([\w.]*\bbranches)\.mark\(([^()]*)\)", r"(await \1.get(\2)).mark", text)
    text = re.sub(r"([\w.]*\bbranches)\.mark\(([^()]*)\)", r"\1.get(\2).mark", text)
    text = re.sub(r"\bbranches\.(rewind|alternatives)\(", r"messages.\1(", text)
    text = re.sub(r"\bthreads\.retain\b", "threads.delete_inactive", text)
    text = re.sub(r"(?<=\w)\.partials\.(list|interrupt|abandoned)\b", r".drafts.\1", text)
    return _move_attributes(_move_imports(text))


_IMPORT = re.compile(r"^( *)from chatledger import (?:\(([^()]*)\)|([^(\n]*))$", re.MULTILINE)


def _move_imports(text: str) -> str:
    return _IMPORT.sub(_moved_import, text)


def _moved_import(found: re.Match[str]) -> str:
    """The import as one line for each module: a formatter wraps it."""
    names = [name.strip() for name in (found[2] or found[3]).split("#")[0].split(",") if name.strip()]
    by_module: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        module = next((module for module, held in HOMES.items() if name.split(" ")[0] in held), "")
        by_module.setdefault(f"chatledger.{module}".rstrip("."), []).append(name)
    return "\n".join(f"{found[1]}from {module} import {', '.join(by_module[module])}" for module in sorted(by_module))


_ATTRIBUTE = re.compile(r"(?<![\w.\-/])chatledger\.(\w+)\b")


def _move_attributes(text: str) -> str:
    moved: set[str] = set()

    def new(found: re.Match[str]) -> str:
        module = next((module for module, held in HOMES.items() if found[1] in held), None)
        if module is None:
            return found[0]
        moved.add(module)
        return f"chatledger.{module}.{found[1]}"

    text = _ATTRIBUTE.sub(new, text)
    return re.sub(
        r"^( *)import chatledger$",
        lambda found: "\n".join(f"{found[1]}import chatledger{one}" for one in ["", *(f".{m}" for m in sorted(moved))]),
        text,
        flags=re.MULTILINE,
    )


def _checked(found: re.Match[str]) -> str:
    new, check = ERRORS[found[1]]
    return f"pytest.raises({new}" + (f", check={check}" if check else "")


def _with_import(text: str, names: list[str]) -> str:
    if not names:
        return text
    line = f"from tests.reasons import {', '.join(sorted(set(names)))}\n"
    at = text.index("\n", text.rindex("import pytest")) + 1
    return text[:at] + line + text[at:]


# --- Calls, by their syntax -------------------------------------------------------------------------------------------

Edit = tuple[int, int, str]
"""Bytes from, bytes to, and what stands there instead."""


def _rewrite_calls(text: str) -> str:
    """Rewrites one call after another, the innermost of a nest first, since each edit moves the others."""
    while edits := _edits(text):
        raw = text.encode()
        for start, end, new in sorted(edits, reverse=True):
            raw = raw[:start] + new.encode() + raw[end:]
        text = raw.decode()
    return text


def _edits(text: str) -> list[Edit]:
    """The edits of calls that do not lie in each other."""
    try:
        tree = compile(text, "", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        return []
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    edits: list[Edit] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            new = _new(node, lambda one: ast.get_source_segment(text, one) or "")
            if new is not None:
                end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
                edits.append((starts[node.lineno - 1] + node.col_offset, end, new))
    return [
        one for one in edits if not any(one[0] <= other[0] and other[1] <= one[1] for other in edits if other != one)
    ]


def _new(node: ast.expr, source: Source) -> str | None:
    if isinstance(node, ast.Await) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        return _encoded(node.value, source, awaits=True) if node.value.func.attr == "history" else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return None
    change = CALLS.get(node.func.attr) if isinstance(node.func, ast.Attribute) else CLASSES.get(node.func.id)
    return None if change is None else change(node, source)


def _called(node: ast.Call, source: Source, name: str, first: list[str], rest: list[ast.expr]) -> str:
    """The call under another name, with other positional arguments and the keywords that it has."""
    assert isinstance(node.func, ast.Attribute)
    named = [f"{one.arg}={source(one.value)}" if one.arg else f"**{source(one.value)}" for one in node.keywords]
    return f"{source(node.func.value)}.{name}({', '.join([*first, *map(source, rest), *named])})"


def _pop(node: ast.Call, name: str, at: int) -> ast.expr | None:
    """Take the argument with that name, or at that position, out of the call."""
    for keyword in node.keywords:
        if keyword.arg == name:
            node.keywords.remove(keyword)
            return keyword.value
    return node.args.pop(at) if at < len(node.args) else None


def _erases(kind: str, name: str) -> Change:
    def change(node: ast.Call, source: Source) -> str | None:
        assert isinstance(node.func, ast.Attribute)
        if not source(node.func.value).endswith("erasures"):
            return None
        owner = None if kind == "tenant" else _pop(node, f"{kind}_id", 0)
        of = f'("{kind}",)' if owner is None else f'("{kind}", {source(owner)})'
        return _called(node, source, name, [of], node.args)

    return change


def _abandoned(node: ast.Call, source: Source) -> str | None:
    assert isinstance(node.func, ast.Attribute)
    of = source(node.func.value)
    if not of.endswith((".partials", ".drafts")):
        return None
    age = _pop(node, "older_than", 0)
    return f"{of.replace('.partials', '.drafts')}.list(abandoned_for={'0' if age is None else source(age)})"


def _puts(node: ast.Call, source: Source) -> str | None:
    """`kv={"a": 1}, kv_expected={"a": 0}` as `kv={"a": Put(1, expected=0)}`, where both are written out."""
    assert isinstance(node.func, ast.Attribute)
    expected = next((one.value for one in node.keywords if one.arg == "kv_expected"), None)
    values = next((one for one in node.keywords if one.arg == "kv"), None)
    if not isinstance(expected, ast.Dict) or values is None or any(key is None for key in expected.keys):
        return None
    given = values.value
    versions = {source(key): source(value) for key, value in zip(expected.keys, expected.values, strict=True) if key}
    if isinstance(given, ast.Dict):
        pairs = {source(key): source(value) for key, value in zip(given.keys, given.values, strict=True) if key}
        start = ""
    else:
        pairs = {key: f"{source(given)}[{key}]" for key in versions}
        start = f"**{source(given)}, "
    puts = [
        f"{key}: " + (f"Put({value}, expected={versions[key]})" if key in versions else value)
        for key, value in pairs.items()
    ]
    named = [f"{one.arg}={source(one.value)}" for one in node.keywords if one.arg not in ("kv", "kv_expected")]
    kv = f"kv={{{start}{', '.join(puts)}}}"
    return f"{source(node.func)}({', '.join([*map(source, node.args), *named, kv])})"


def _merges(node: ast.Call, source: Source) -> str | None:
    assert isinstance(node.func, ast.Attribute)
    if not source(node.func.value).endswith(".kv"):
        return None
    node.keywords.append(ast.keyword("merge", ast.Constant(True)))
    named = [f"{one.arg}={'True' if one.arg == 'merge' else source(one.value)}" for one in node.keywords]
    return f"{source(node.func.value)}.put({', '.join([*map(source, node.args), *named])})"


def _archives(archived: str) -> Change:
    def change(node: ast.Call, source: Source) -> str | None:
        assert isinstance(node.func, ast.Attribute)
        of = source(node.func.value)
        return f"{of}.update({source(node.args[0])}, archived={archived})" if of.endswith("threads") else None

    return change


_OPENS = re.compile(r"(\b|_)(Ledger|blocking|database|kept|compiling|copy|self)$")
_OPTIONS = ("schema", "pooler", "pool_size", "max_overflow", "replica", "rls", "distributed")
_FUNCTION = re.compile(r"^lambda\b|\.get$|^read_keys\(")
"""What may be a function of keys, by its source: a ring goes as it is."""


def _opens(node: ast.Call, source: Source) -> str | None:
    return _with_options(node, source) if _OPENS.search(source(node.func).removesuffix(".open")) else None


def _with_options(node: ast.Call, source: Source) -> str | None:
    """`open(schema=s, keys=k)` as `open(encryption=k, postgresql=PostgreSQL(schema=s))`; a Transaction likewise."""
    given = {one.arg: source(one.value) for one in node.keywords if one.arg}
    if not given.keys() & {*_OPTIONS, "keys", "plaintext", "engine"}:
        return None
    first = [*map(source, node.args), *([given["engine"]] if "engine" in given else [])]
    old = {*_OPTIONS, "keys", "plaintext", "engine"}
    named = [
        f"{one.arg}={source(one.value)}" if one.arg else f"**{source(one.value)}"
        for one in node.keywords
        if one.arg not in old
    ]
    options = ", ".join(f"{name}={given[name]}" for name in _OPTIONS if name in given)
    if (encryption := _encryption(given)) is not None:
        named.append(f"encryption={encryption}")
    if options:
        named.append(f"postgresql=PostgreSQL({options})")
    return f"{source(node.func)}({', '.join([*first, *named])})"


def _replica(node: ast.Call, source: Source) -> str | None:
    """`ledger.messages.history(t, min_position=p)` as `ledger.replica(p).messages.history(t)`."""
    assert isinstance(node.func, ast.Attribute)
    position = next((one.value for one in node.keywords if one.arg == "min_position"), None)
    of = source(node.func.value).removesuffix(".messages")
    if position is None or of.split(".")[0] in ("tx", "transaction"):
        return None
    called = source(node.func).removeprefix(of)
    rest = [one for one in node.keywords if one.value is not position]
    named = [f"{one.arg}={source(one.value)}" if one.arg else f"**{source(one.value)}" for one in rest]
    return f"{of}.replica({source(position)}){called}({', '.join([*map(source, node.args), *named])})"


def _encryption(given: dict[str, str]) -> str | None:
    if "plaintext" in given:
        return f"Encryption({given.get('keys', 'None')}, plaintext={given['plaintext']})"
    keys = given.get("keys")
    return f"Encryption({keys})" if keys and _FUNCTION.search(keys) else keys


_NO_LEDGER = (
    "messages",
    "client",
    "http",
    "httpx",
    "pairing",
    "clients",
    "kv",
    "recorder",
    "store",
    "self",
    "peer",
    "inside",
)
"""What else has calls of these names."""


def _is_ledger(node: ast.Call, source: Source) -> bool:
    assert isinstance(node.func, ast.Attribute)
    of = source(node.func.value)
    return not (of.endswith("]") or "Recorder(" in of or re.split(r"\W+", of)[-1].endswith(_NO_LEDGER))


def _named(node: ast.Call, source: Source) -> dict[str, str]:
    return {one.arg or "**": source(one.value) for one in node.keywords}


def _again(of: str, first: list[str], named: dict[str, str]) -> str:
    return f"{of}({', '.join([*first, *(f'{k}={v}' if k != '**' else f'**{v}' for k, v in named.items())])})"


def _append(node: ast.Call, source: Source) -> str | None:
    """`ledger.append(t, payload, format=f)` as `ledger.messages.append(t, Payload(payload, f))`."""
    assert isinstance(node.func, ast.Attribute)
    given, named = list(map(source, node.args)), _named(node, source)
    if not _is_ledger(node, source) or len(given) + ("payload" in named) != 2 or given[0].startswith("*"):
        return _puts(node, source)
    value = named.pop("payload") if "payload" in named else given[1]
    form = named.pop("format", None)
    payload = f"Payload({value})" if form is None else f"Payload({value}, {form})"
    return _again(f"{source(node.func.value)}.messages.append", [given[0], payload], named)


def _stream(node: ast.Call, source: Source) -> str | None:
    assert isinstance(node.func, ast.Attribute)
    of, given, named = source(node.func.value), list(map(source, node.args)), _named(node, source)
    if not (_is_ledger(node, source) or of.endswith("ledger.messages")) or len(given) != 1:
        return None
    message = {name: named.pop(old) for old, name in (("message_id", "message_id"), ("name", "name")) if old in named}
    if message:
        named["message"] = _again("ChatMessage.assistant", [], message)
    pace = {str(name): named.pop(name) for name in ("interval", "size", "lease") if name in named}
    if pace:
        named["pace"] = _again("Pace", [], pace)
    if named.get("resume") in ('"restart"', '"continue"') and named.pop("resume") == '"continue"':
        named["resume"] = "True"
    new = _again(f"{of.removesuffix('.messages')}.messages.stream", given, named)
    return None if new == _again(source(node.func), given, _named(node, source)) else new


def _follow(node: ast.Call, source: Source) -> str | None:
    assert isinstance(node.func, ast.Attribute)
    of, given, named = source(node.func.value), list(map(source, node.args)), _named(node, source)
    if not _is_ledger(node, source) or len(given) != 1:
        return None
    if "after" in named:
        named["cursor"] = named.pop("after")
    return _again(f"{of}.messages.follow", given, named)


_PLACED = re.compile(r"""^f?["']|message_id$|_id$|\bid_?\)?$""")
"""What names a message by its id, by its source. A seq is left to the reader."""


def _creates(node: ast.Call, source: Source) -> str | None:
    """`append(t, m, create=True, title=x, user_id=u)` as `user(u)…append(t, m, create=NewThread(title=x))`."""
    assert isinstance(node.func, ast.Attribute)
    of, given, named = source(node.func.value), list(map(source, node.args)), _named(node, source)
    if not of.endswith("messages"):
        return None
    fields: dict[str, str] = {}
    if "create" in named:
        fields = {name: named.pop(name) for name in ("title", "kind") if name in named}
    if fields:
        named["create"] = _again("NewThread", [], fields)
    if "after" in named and _PLACED.search(named["after"]):
        named["reply_to"] = named.pop("after")
    user = named.pop("user_id", "None")
    if user != "None":
        of = f"{of.removesuffix('.messages')}.user({user}).messages"
    new = _again(f"{of}.{node.func.attr}", given, named)
    return None if new == _again(source(node.func), given, _named(node, source)) else new


def _first(*changes: Change) -> Change:
    """The first change that changes anything; the next round finds the others."""

    def change(node: ast.Call, source: Source) -> str | None:
        return next((new for new in (one(node, source) for one in changes) if new is not None), None)

    return change


def _sees(*repositories: str) -> Change:
    """`ledger.threads.list(user_id=u)` as `ledger.user(u).threads.list()`."""

    def change(node: ast.Call, source: Source) -> str | None:
        assert isinstance(node.func, ast.Attribute)
        of = source(node.func.value)
        repository = next((one for one in repositories if of.endswith(f".{one}") or not one), None)
        if repository is None or not any(one.arg == "user_id" for one in node.keywords):
            return None
        user = _pop(node, "user_id", len(node.args))
        assert user is not None
        if ast.unparse(user) == "None":
            return _called(node, source, node.func.attr, [], node.args)
        of = of.removesuffix(f".{repository}") if repository else of
        path = ".".join(name for name in (f"{of}.user({source(user)})", repository, node.func.attr) if name)
        named = [f"{one.arg}={source(one.value)}" if one.arg else f"**{source(one.value)}" for one in node.keywords]
        return f"{path}({', '.join([*map(source, node.args), *named])})"

    return change


def _frames(node: ast.Call, source: Source) -> str | None:
    """`ledger.frames.calls(user_id=u)` as `ledger.user(u).frames("calls")`."""
    assert isinstance(node.func, ast.Attribute)
    of = source(node.func.value)
    if not of.endswith(".frames"):
        return None
    user = _pop(node, "user_id", len(node.args))
    of = of.removesuffix(".frames") + (f".user({source(user)})" if user is not None else "")
    named = [f"{one.arg}={source(one.value)}" if one.arg else f"**{source(one.value)}" for one in node.keywords]
    given = ", ".join([f'"{node.func.attr}"', *named])
    return f"{of}.frames({given})"


_WINDOW = ("newest", "last", "limit", "last_turns", "max_tokens", "count_tokens", "before", "after")


def _window(named: dict[str, str]) -> str | None:
    """The window of the old keywords, which it takes out; None for the whole branch."""
    given = {name: named.pop(name) for name in _WINDOW if name in named}
    before, after = given.get("before"), given.get("after")
    for position in (before, after):
        if position is not None and not re.search(r"(cursor|mark)$", position):
            named.setdefault("branch", "0")
    if "last_turns" in given:
        return f"Turns({given['last_turns']})"
    if "max_tokens" in given:
        counted = given.get("count_tokens")
        return f"Tokens({given['max_tokens']}" + (f", {counted})" if counted else ")")
    if not given:
        return None
    count = next((given[name] for name in ("newest", "last", "limit") if name in given), "1_000")
    if before is not None:
        return f"Newest({count}, before={before})"
    if after is not None:
        return f"Oldest({count}, after={after})"
    return f"Oldest({count})" if "limit" in given else f"Newest({count})"


def _history(node: ast.Call, source: Source) -> str | None:
    """`messages.history(t, newest=n)` as `messages.history(t, Newest(n))`."""
    assert isinstance(node.func, ast.Attribute)
    of, given, named = source(node.func.value), list(map(source, node.args)), _named(node, source)
    if "min_position" in named:
        return _replica(node, source)
    if not of.endswith("messages") or "**" in named or not {*_WINDOW, "partials"} & named.keys():
        return None
    named.pop("partials", None)
    window = _window(named)
    return _again(f"{of}.history", [*given, *([] if window is None else [window])], named)


def _encoded(node: ast.Call, source: Source, *, awaits: bool) -> str | None:
    """`await ledger.history(t, format=f, …)` as an encoded history, or as a prompt."""
    assert isinstance(node.func, ast.Attribute)
    of, given, named = source(node.func.value), list(map(source, node.args)), _named(node, source)
    if "format" not in named or of.endswith("messages") or "**" in named:
        return None
    form, view = named.pop("format"), named.pop("view", '"stored"')
    how = {str(name): named.pop(name) for name in ("as_", "carry") if name in named}
    named.pop("partials", None)
    window = _window(named)
    windows = [] if window is None else [window]
    word = "await " if awaits else ""
    if view == '"model"':
        return word + _again(f"{of}.messages.prompt", [*given, form, *windows], named)
    read = word + _again(f"{of}.messages.history", [*given, *windows], named)
    return _again(f"({read}).encode" if awaits else f"{read}.encode", [form], how)


CALLS: dict[str, Change] = {
    "history": _history,
    "open": _opens,
    "abandoned": _abandoned,
    "append": _first(_append, _creates),
    "stream": _first(_stream, _creates),
    "follow": _follow,
    "archive": _archives("True"),
    "unarchive": _archives("False"),
    "merge": _merges,
    "erase_thread": _erases("thread", "erase"),
    "erase_user": _erases("user", "erase"),
    "erase_tenant": _erases("tenant", "erase"),
    "find_thread": _erases("thread", "find"),
    "find_user": _erases("user", "find"),
    **{name: _sees("threads") for name in ("create", "get", "find", "list", "count")},
    "search": _sees("threads", "messages"),
    "usage": _sees("runs"),
    "stats": _sees(""),
    **dict.fromkeys(("messages", "calls", "runs", "scores"), _frames),
}
"""What becomes of a call of an attribute of that name; None leaves it."""
CLASSES: dict[str, Change] = {"Transaction": _with_options}
"""What becomes of a call of a class."""


_VALUES = frozenset(
    ("Payload", "Pace", "ChatMessage", "Newest", "Oldest", "Turns", "Tokens", "NewThread", "PostgreSQL", "Encryption")
)
_OWN_IMPORT = re.compile(r"^from chatledger import (?:\(([^()]*)\)|([^(\n]*))$", re.MULTILINE)


def _import_names(before: str, text: str) -> str:
    """The text with an import of each value that the rewriting made, and that the text knew by no name."""
    missing = sorted(
        name for name in _VALUES if re.search(rf"\b{name}[(.]", text) and not re.search(rf"\b{name}\b", before)
    )
    if not missing:
        return text
    found = _OWN_IMPORT.search(text)
    if found is None:
        at = re.search(r"^(from|import) (?!__future__)", text, re.MULTILINE)
        start = at.start() if at else 0
        return f"{text[:start]}from chatledger import {', '.join(missing)}\n{text[start:]}"
    names = [one.strip() for one in (found[1] or found[2]).split(",") if one.strip()]
    return text[: found.start()] + f"from chatledger import {', '.join([*names, *missing])}" + text[found.end() :]


def _import_on_page(before: str, text: str) -> str:
    """As `_import_names`, in the first import of the page, or else where the first value stands."""
    if _OWN_IMPORT.search(text) is not None:
        return _import_names(before, text)
    block = re.search(r"^```python[^\n]*\n", text, re.MULTILINE)
    return text if block is None else text[: block.end()] + _import_names(before, text[block.end() :])


# --- Files ------------------------------------------------------------------------------------------------------------


def _rewrite_file(path: Path, text: str) -> str:
    if path.suffix != ".md":
        return _import_names(text, _rewrite_calls(rewrite(text)))
    blocks = re.split(r"(^```python[^\n]*\n.*?^```$)", rewrite(text), flags=re.MULTILINE | re.DOTALL)
    new = "".join(_rewrite_block(block) if block.startswith("```python") else block for block in blocks)
    return _import_on_page(text, new)


def _rewrite_block(block: str) -> str:
    head, body = block.split("\n", 1)
    return f"{head}\n{_rewrite_calls(body.removesuffix('```'))}```"


def files(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        found = path.rglob("*") if path.is_dir() else [path]
        yield from (one for one in found if one.suffix in (".py", ".pyi", ".md") and ".venv" not in one.parts)


if __name__ == "__main__":
    for file in files(sys.argv[1:]):
        before = file.read_text(encoding="utf-8")
        if (after := _rewrite_file(file, before)) != before:
            file.write_text(after, encoding="utf-8")
            print(file)
