"""The files of the statements: one for each shape and each kind of database."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

from tests.storage.sent import Sent
from tests.storage.statements import appends, drafts, reads
from tests.storage.statements.layout import WIDTH, lay_out, pattern, same
from tests.storage.statements.rest import the_rest
from tests.storage.statements.scene import Scene, noting

FOLDER = Path(__file__).parent
COMMAND = "python -m tests.storage.statements"
_OF_REST = """calls of these kinds have other arguments than those of the other files. Each statement stands here once,
in the order in which a run of all calls sends it first.
"""
Shape = Callable[[Scene], Awaitable[None]]


def shapes() -> Iterator[tuple[str, Shape]]:
    for module in (appends, drafts, reads):
        for name, function in vars(module).items():
            if inspect.iscoroutinefunction(function) and [*inspect.signature(function).parameters] == ["scene"]:
                yield name, function


async def written(kind: str, url: str) -> dict[str, str]:
    """The text of each file of this kind of database."""
    sent = {name: await _sent(Scene(kind, url, f"{kind} {name}"), shape) for name, shape in shapes()}
    texts = {name: _text(shape.__doc__ or "", sent[name]) for name, shape in shapes()}
    known = {pattern(one.text) for found in sent.values() for one in found}
    rest = {pattern(one.text): one for one in reversed(await _sent(Scene(kind, url, f"{kind} rest"), the_rest))}
    texts["rest"] = _text(_OF_REST, [one for key, one in reversed(rest.items()) if key not in known])
    return texts


async def _sent(scene: Scene, shape: Shape) -> list[Sent]:
    with noting(scene):
        await shape(scene)
    return scene.sent


def _text(when: str, sent: Iterable[Sent]) -> str:
    head = textwrap.fill(f"Sent when {' '.join(when.split())}", WIDTH - 3)
    return "\n".join([textwrap.indent(head, "-- "), *map(_statement, sent)])


def _statement(sent: Sent) -> str:
    text = sent.text.strip().rstrip(";")
    laid_out = lay_out(text)
    assert same(text, laid_out), text
    return f"{'-- Once for each row:' * sent.many}\n{laid_out};\n".lstrip()


def stored(kind: str) -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((FOLDER / kind).glob("*.sql"))}


def write(kind: str, texts: dict[str, str]) -> None:
    folder = FOLDER / kind
    folder.mkdir(exist_ok=True)
    for name in stored(kind).keys() - texts.keys():
        (folder / f"{name}.sql").unlink()
    for name, text in texts.items():
        (folder / f"{name}.sql").write_text(text, encoding="utf-8")
