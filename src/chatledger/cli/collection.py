"""Garbage collection while a command makes millions of objects that reference counting frees."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

INTERVAL = 100_000
"""New objects in cycles that may pile up before they are collected: some 20 MB. A batch of an import holds fewer, and
so does a page of a copy.
"""


@contextmanager
def collected_rarely() -> Iterator[None]:
    """Collect garbage only when INTERVAL objects more were made than freed, and then as before.

    An import or a copy keeps its objects for a moment and makes nearly no cycles, so each collection walks through
    them in vain. Only a program that owns its process may change this, and so the library does not.
    """
    before = gc.get_threshold()
    if before[0]:  # 0: the user of this process collects nothing
        gc.set_threshold(max(INTERVAL, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
