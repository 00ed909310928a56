"""Makes the files that commands write. They hold conversations, so only their owner may read them.

Others may have a folder too, such as /tmp, and put a link where a file is about to be written. So a file is made under
a random name, with flags that open nothing that is there already. Once it is complete it gets its own name: by `link`
where nothing may be overwritten, or by `rename`, which replaces a link and does not follow it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

_BESIDE = ("-journal", "-wal", "-shm")
"""What SQLite keeps beside a file."""
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@contextmanager
def new_file(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """An empty file of a random name in the folder of the target. It becomes the target at the end, and is removed
    after an exception. Raises FileExistsError, unless `replace`, if anything stands there by then.
    """
    unfinished = _create(target)
    try:
        yield unfinished
        if replace:
            os.replace(unfinished, target)
        else:
            _put(unfinished, target)
    finally:
        for beside in ("", *_BESIDE):
            with suppress(FileNotFoundError):
                os.unlink(f"{unfinished}{beside}")


@contextmanager
def text_file(path: str | Path) -> Iterator[TextIO]:
    """A text file that appears, or replaces the one there, once it is complete. A link leads to its file, as the user
    wrote it. A pipe or a device such as /dev/null is written directly: a rename would replace it for every program.
    """
    named = Path(path)
    if named.exists() and not named.is_file():
        with named.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
        return
    with (
        new_file(named.resolve(), replace=True) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        yield stream


def stands_there(target: Path) -> str | None:
    """What keeps a new SQLite file from that name: the name itself, or that of a journal, which SQLite would play back
    into the new file. A link that leads nowhere counts as well.
    """
    taken = (f"{target}{beside}" for beside in ("", *_BESIDE))
    return next((name for name in taken if os.path.lexists(name)), None)


def _create(target: Path) -> Path:
    """Its name is short, because the target's may be as long as a name can be."""
    unfinished = target.with_name(f".chatledger-{secrets.token_hex(8)}.unfinished")
    os.close(os.open(unfinished, _NEW, stat.S_IRUSR | stat.S_IWUSR))
    return unfinished


def _put(unfinished: Path, target: Path) -> None:
    try:
        os.link(unfinished, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except (OSError, NotImplementedError):  # a file system without hard links: an empty file holds the name
        os.close(os.open(target, _NEW, stat.S_IRUSR | stat.S_IWUSR))
        os.replace(unfinished, target)
