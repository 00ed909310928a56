"""The frameworks are extras: importing an adapter without its framework raises an error that names the extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chatledger.errors import MissingExtra


@contextmanager
def importing(package: str, *, extra: str, name: str) -> Iterator[None]:
    """Around the imports of a framework. Raises MissingExtra if `package` is not installed. Any other failed import is
    the framework's own, and is raised as it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise MissingExtra(extra, f"the adapter of {name}") from None
