"""Signs of life on stderr, for a person only: nothing is drawn where stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    """A bar by bytes read; call what it gives with the name of the file and how far the reading has come in all."""
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
    """A bar by a share of things; call what it gives with those that are done and those there are."""
    if quiet or not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def count_bar(what: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """A bar by things done; call what it gives for each."""
    if quiet or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
