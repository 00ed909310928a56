"""The parts that the core of the library works without: it reaches one by its place, when it is first used."""

from __future__ import annotations

import importlib
from typing import Any

from chatledger.errors import MissingExtra


def load(place: str, what: str) -> Any:
    """What an annex has at a place, `module:name`. Raises MissingExtra, with the use that needs it, if this
    installation lacks the annex. Any other failed import is a fault of the annex, and is raised as it is.
    """
    module, name = place.split(":")
    try:
        annex = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise MissingExtra(error.name, what) from None
    return getattr(annex, name)
