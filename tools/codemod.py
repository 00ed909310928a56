"""Rewrites programs from the calls before 0.1.0 to those of 0.1.0: Python files, and the Python of Markdown pages.

    python tools/codemod.py FILE_OR_FOLDER …        then: ruff check --fix && ruff format

It reads no types, so it changes only what a name alone tells, and leaves the rest to a type checker.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

TYPES = frozenset(
    {
        "Alternative",
        "Branch",
        "CallPlace",
        "ChangeKind",
        "CheckedThread",
        "CountTokens",
        "Deleted",
        "Delta",
        "Erasure",
        "ErasureKind",
        "FeedbackComparison",
        "FeedbackSummary",
        "Finding",
        "FormattedHistory",
        "Hit",
        "HitField",
        "IntervalMethod",
        "Json",
        "JsonObject",
        "JsonValue",
        "Keys",
        "KvScope",
        "KvValue",
        "LedgerStats",
        "Loss",
        "Metrics",
        "NewThread",
        "OnOpenCalls",
        "Opening",
        "Output",
        "Page",
        "Part",
        "PartialMessage",
        "Progress",
        "Repair",
        "Revision",
        "RulesLevel",
        "Run",
        "RunPrices",
        "RunStatus",
        "Severity",
        "State",
        "ThreadAgent",
        "ThreadChange",
        "ThreadChangeKind",
        "ThreadOrder",
        "UNSET",
        "Unset",
        "UsageSummary",
        "Violation",
    }
)
OTHER_ERRORS = frozenset(
    {
        "BranchNotFound",
        "DamagedCell",
        "DecodeError",
        "DraftLive",
        "DraftLost",
        "EncodeError",
        "EncryptionError",
        "Erased",
        "FeedbackNotFound",
        "FormatError",
        "IdConflict",
        "InvalidCursor",
        "LimitExceeded",
        "MessageNotFound",
        "MissingExtra",
        "NothingToSend",
        "OutcomeUnknown",
        "RunConflict",
        "RunNotFound",
        "SchemaMismatch",
        "TenantOnly",
        "UnknownFormat",
    }
)
ADMIN = frozenset(
    {
        "Address",
        "SchemaStatus",
        "alembic_include_name",
        "backup",
        "configure_sqlite",
        "migrate",
        "offline_sql",
        "read_keys",
        "restore",
        "schema_status",
    }
)
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
    "types": TYPES,
    "errors": OTHER_ERRORS,
    "admin": ADMIN,
}
"""The names that left `chatledger` for a module of it."""
_RAISES = re.compile(rf"pytest\.raises\(({'|'.join(ERRORS)})\b(?=[,)])")
_NAMES = re.compile(rf"\b({'|'.join(ERRORS)})\b")


def rewrite(text: str) -> str:
    text, count = _RAISES.subn(_checked, text)
    if count:
        text = _with_import(text, re.findall(r"check=(about|because)\(", text))
    text = _NAMES.sub(lambda found: ERRORS[found[1]][0], text)
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


def files(paths: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        found = path.rglob("*") if path.is_dir() else [path]
        yield from (one for one in found if one.suffix in (".py", ".pyi", ".md") and ".venv" not in one.parts)


if __name__ == "__main__":
    for file in files(sys.argv[1:]):
        before = file.read_text(encoding="utf-8")
        if (after := rewrite(before)) != before:
            file.write_text(after, encoding="utf-8")
            print(file)
