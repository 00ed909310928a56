"""Spinners and progress bars on stderr. They are drawn only if stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from chatledger.cli.escape import one_line
from chatledger.cli.output import console


@contextmanager
def working(what: str, *, quiet: bool = False) -> Iterator[None]:
    if quiet or not sys.stderr.isatty():
        yield
        return
    with console(stderr=True).status(f"{what} …"):
        yield


@contextmanager
def byte_bar(total: int | None, *, quiet: bool = False) -> Iterator[Callable[[str, int], None]]:
    """A bar of bytes. Yields a function that takes the current file's name and the bytes read of all files."""
    if quiet or not sys.stderr.isatty():
        yield lambda _name, _byte: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("importing", total=total)
        yield lambda name, byte: progress.update(task, description=one_line(name), completed=byte)


@contextmanager
def share_bar(what: str, *, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """A bar of items whose total is not known yet. Yields a function that takes the number done and the total. The bar
    appears once the work has taken a second.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=console(stderr=True), transient=True)
    task = progress.add_task(what, total=None)
    began = monotonic()

    def show(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total)
        if monotonic() - began > 1:
            progress.start()

    try:
        yield show
    finally:
        progress.stop()


@contextmanager
def count_bar(what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """A bar of `total` items. Yields a function to call after each item."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
